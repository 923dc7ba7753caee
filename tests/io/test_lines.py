"""Finding and reading text: every kind of file, standard input, and what can be wrong with them."""

import gzip
import io
import lzma
import os
import random
import sys
import threading

import pytest
import zstandard

from elmokit.errors import InputError, MissingExtraError
from elmokit.io.lines import (
    STANDARD_INPUT,
    count_lines,
    find_files,
    read_lines,
    total_bytes,
)

TEXT = "one two\n\nthree ünïcödé\n".encode()
NOISE = random.Random(0).randbytes(10_000).hex().encode()

PACKERS = {
    "a.txt": lambda data: data,
    "b.gz": lambda data: gzip.compress(data, mtime=0),
    "c.xz": lzma.compress,
    "d.zst": lambda data: zstandard.compress(data[:5]) + zstandard.compress(data[5:]),
}


@pytest.fixture
def stdin(monkeypatch):
    def set_bytes(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return set_bytes


def test_files_of_every_kind(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, pack in PACKERS.items():
        (folder / name).write_bytes(pack(TEXT))
    (folder / "e.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n"))
    (folder / ".hidden").write_bytes(b"\xff")
    files = find_files([folder])
    assert [f.name for f in files] == [*PACKERS, "e.txt"]
    for path in files:
        assert list(read_lines(path)) == ["one two", "", "three ünïcödé"]
        assert list(read_lines(str(path))) == ["one two", "", "three ünïcödé"]


def test_only_a_line_feed_ends_a_line(tmp_path):
    (tmp_path / "a").write_bytes("a\rb\u2028c\x0bd \n e".encode())
    assert list(read_lines(tmp_path / "a")) == ["a\rb\u2028c\x0bd ", " e"]


def test_standard_input(stdin, tmp_path):
    stdin(b"\xef\xbb\xbf" + TEXT)
    (tmp_path / "a").write_bytes(TEXT)
    assert find_files([tmp_path / "a", "-"]) == [tmp_path / "a", STANDARD_INPUT]
    read = []
    assert list(read_lines("-", read.append)) == ["one two", "", "three ünïcödé"]
    assert sum(read) == len(TEXT) + 3
    assert not sys.stdin.closed
    stdin(b"fine\ncaf\xe9\n")
    with pytest.raises(InputError, match="line 2 of standard input is not UTF-8 text"):
        list(read_lines(STANDARD_INPUT))
    with pytest.raises(InputError, match="given twice"):
        find_files(["-", tmp_path / "a", "-"])


@pytest.mark.parametrize("name", PACKERS)
def test_advance_adds_up_to_the_size(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(PACKERS[name](b"\n".join([NOISE] * 20)))
    read = []
    for _ in read_lines(path, read.append):
        pass
    assert sum(read) == path.stat().st_size == total_bytes([path])
    assert len(read) > 1
    assert total_bytes([path, STANDARD_INPUT]) is None


@pytest.mark.parametrize(
    ("data", "n"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2)]
)
def test_count_lines(tmp_path, data, n):
    (tmp_path / "a.txt").write_bytes(data)
    assert count_lines(tmp_path / "a.txt") == n == len(list(read_lines(tmp_path / "a.txt")))


def test_lines_that_cannot_be_counted(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n"))
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", tmp_path / "a.gz", tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        assert count_lines(path) is None


def test_a_pipe(tmp_path):
    """As of a shell's <(command)."""
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(TEXT,))
    thread.start()
    assert list(read_lines(tmp_path / "pipe")) == ["one two", "", "three ünïcödé"]
    thread.join()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", "fine\n".encode("utf-16"), r"a\.txt is text in UTF-16; .* iconv -f utf-16 -t"),
        ("a.txt", b"fine\nab\xff\xfe", r"line 2 of .*a\.txt is not UTF-8 text \(byte 0xff at pos"),
        (
            "a.gz",
            gzip.compress(b"fine\ncaf\xe9", mtime=0),
            r"line 2 of .* \(byte 0xe9 at position 4\)",
        ),
        ("a.gz", gzip.compress(b"x" * 10_000, mtime=0)[:-20], "is the file complete"),
        ("a.gz", b"no such thing", "is the file complete"),
        ("a.xz", lzma.compress(b"x" * 10_000)[:-20], "is the file complete"),
        ("a.xz", b"no such thing", "is the file complete"),
        ("a.zst", b"no such thing", "is the file complete"),
        ("a.zst", zstandard.compress(NOISE)[:-20], "ends too early; is the file complete"),
    ],
)
def test_broken_files(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(read_lines(tmp_path / name))


def test_no_file(tmp_path):
    for read in (lambda path: list(read_lines(path)), lambda path: find_files([path])):
        with pytest.raises(InputError, match="there is no file .*missing.* - for standard input"):
            read(tmp_path / "missing")
    with pytest.raises(InputError, match="it is a folder; give a file"):
        list(read_lines(tmp_path))
    with pytest.raises(InputError, match="contains no files"):
        find_files([tmp_path])


def test_no_permission(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(InputError, match=r"cannot read .*x: Permission denied$"):
        list(read_lines(tmp_path / "x"))


def test_without_zstandard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(PACKERS["d.zst"](TEXT))
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[zstd\]'"):
        list(read_lines(tmp_path / "a.zst"))


def test_a_line_without_end(tmp_path, monkeypatch):
    """Such as /dev/zero, which would fill the memory."""
    monkeypatch.setattr("elmokit.io.lines._LINE_BYTES", 1 << 20)
    (tmp_path / "a.txt").write_text("short\n" + "a" * (1 << 20) + "\n")
    for path, number in ((tmp_path / "a.txt", 2), ("/dev/zero", 1)):
        with pytest.raises(InputError, match=f"line {number} of {path} is longer than 1 MiB"):
            list(read_lines(path))
