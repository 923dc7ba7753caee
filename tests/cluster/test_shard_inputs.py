"""The ranges of a corpus contain every row exactly once, wherever they are cut."""

import errno
import gzip
import hashlib
import json
import lzma
import zipfile
from types import SimpleNamespace
from typing import ClassVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from elmokit.cluster.shard_inputs import InputFile, Range, find_inputs, kind_of, ranges
from elmokit.cluster.shard_rows import read_rows
from elmokit.errors import InputError
from helpers.shards import corpus


def texts(files, column="text"):
    found = []
    for part in ranges(files):
        rows = list(read_rows(part, column, hashlib.sha256()))
        positions = [position for position, _ in rows]
        assert positions == sorted(set(positions))
        if part.kind != "parquet" and not part.is_packed:
            assert all(part.start <= position < part.end for position in positions)
        found += [text for _, text in rows]
    return found


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_every_cut_gives_every_line_once(tmp_path, end):
    lines = ["", "first", "", "é" * 20, "x", "  last "]
    raw = b"\xef\xbb\xbf" + (end or "\n").join(lines).encode() + end.encode()
    (tmp_path / "a.txt").write_bytes(raw)
    for one in range(1, len(raw)):
        for other in range(one, len(raw), 5):
            cuts = (0, one, other, len(raw))
            file = InputFile(str(tmp_path / "a.txt"), "text", len(raw), "", cuts)
            assert texts([file]) == [line.strip() for line in lines]


def test_shards_have_about_the_rows_that_were_asked_for(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {i:05}\n" for i in range(10_000)))
    (file,) = find_inputs([tmp_path / "a.txt"], 1000, "text")
    counts = [len(list(read_rows(p, "text", hashlib.sha256()))) for p in ranges([file])]
    assert len(counts) == 10
    assert all(900 < n < 1100 for n in counts)
    assert sum(counts) == 10_000


def test_planning_does_not_read_the_text(tmp_path):
    with (tmp_path / "large.txt").open("wb") as file:
        file.write(b"a line of text\n" * 10_000)
        file.truncate(1 << 40)  # a terabyte with a hole
    (found,) = find_inputs([tmp_path / "large.txt"], 10_000_000, "text")
    assert len(found.cuts) == pytest.approx((1 << 40) / (15 * 10_000_000), rel=0.01)


def test_json_lines(tmp_path):
    lines = corpus(50)
    values = [{"id": i, "body": line} for i, line in enumerate(lines)] + [{"body": None}]
    raw = "\n\n".join(json.dumps(value) for value in values)
    (tmp_path / "a.jsonl").write_text(raw + '\n{"body": "\\ud83d half"}\n')
    files = find_inputs([tmp_path / "a.jsonl"], 10, "body")
    assert len(ranges(files)) > 3
    assert texts(files, "body") == [*(line.strip() for line in lines), "", "� half"]
    for bad, message in (("{", "is no JSON"), ('{"x": 1}', "no key 'body'"),
                         ('{"body": 3}', "expected a string"), ("[1]", "no key")):  # fmt: skip
        (tmp_path / "bad.jsonl").write_text(f'{{"body": "x"}}\n{bad}\n')
        with pytest.raises(InputError, match=message):
            texts(find_inputs([tmp_path / "bad.jsonl"], 10, "body"), "body")


def test_parquet_is_cut_at_rows_across_row_groups(tmp_path):
    lines = [line.strip() for line in corpus(100)]
    table = pa.table({"number": range(101), "text": [*lines, None]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=17)
    for rows in (1, 10, 40, 1000):
        files = find_inputs([tmp_path / "a.parquet"], rows, "text")
        assert len(ranges(files)) == -(-101 // rows)
        assert texts(files) == [*lines, ""]
    with pytest.raises(InputError, match="has no column 'body', only number, text"):
        find_inputs([tmp_path / "a.parquet"], 10, "body")
    with pytest.raises(InputError, match="has the type int64; expected strings"):
        find_inputs([tmp_path / "a.parquet"], 10, "number")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is the Parquet file complete"):
        find_inputs([tmp_path / "b.parquet"], 10, "text")


def test_a_compressed_file_is_one_range(tmp_path):
    raw = "".join(f"{line}\n" for line in corpus(100)).encode()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "b.jsonl.xz").write_bytes(lzma.compress(b'{"text": "packed"}\n'))
    files = find_inputs([tmp_path], 10, "text")
    assert [len(file.cuts) - 1 for file in files] == [1, 1]
    assert texts(files) == [*(line.strip() for line in corpus(100)), "packed"]
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(raw)[:-20])
    with pytest.raises(InputError, match="is the file complete"):
        texts(files)


def test_folders_and_urls(tmp_path):
    memory = fsspec.filesystem("memory")
    memory.pipe("/corpus/b.txt", b"second\n")
    memory.pipe("/corpus/a.txt", b"first\n" * 100)
    memory.pipe("/corpus/_logs/x.txt", b"no text\n")
    memory.pipe("/corpus/empty.txt", b"")
    files = find_inputs(["memory://corpus"], 10, "text")
    assert [file.path for file in files][:2] == ["memory://corpus/a.txt", "memory://corpus/b.txt"]
    assert texts(files) == ["first"] * 100 + ["second"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["-"], "standard input"),
        (["nothing.txt"], "there is no file"),
        (["folder"], "contains no files"),
        (["a.txt", "a.txt"], "is given twice"),
        (["nosuch://a"], "no path or URL that fsspec knows"),
    ],
)
def test_wrong_inputs(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(InputError, match=message):
        find_inputs(given, 10, "text")


def test_text_that_is_not_utf8_names_its_place(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"good\nb\xe4d\n")
    with pytest.raises(InputError, match="the line at byte 5 of .*a.txt is not UTF-8"):
        texts(find_inputs([tmp_path / "a.txt"], 10, "text"))


def test_the_files_of_object_stores():
    """They are of fsspec's own class, whose readline takes no limit."""
    from fsspec.spec import AbstractBufferedFile

    from elmokit.cluster.shard_rows import _lines

    content = b"first\nsecond line\nthird"

    class ObjectFile(AbstractBufferedFile):
        def _fetch_range(self, start, end):
            return content[start:end]

    def lines(start, end):
        file = ObjectFile(MemoryFileSystem(), "/a", "rb", size=len(content))
        part = SimpleNamespace(path="/a", start=start, end=end)
        return [line for _, line in _lines(file, part)]

    assert lines(0, 8) + lines(8, len(content)) == content.splitlines(keepends=True)


class HostedFileSystem(MemoryFileSystem):
    """Like HDFS: a URL names a machine, which is no part of a path."""

    protocol = "hosted"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("hosted://").partition("/")[2] if "://" in path else path

    @staticmethod
    def _get_kwargs_from_urls(url):
        user, _, host = url.removeprefix("hosted://").partition("/")[0].rpartition("@")
        password = {"password": user.partition(":")[2]} if ":" in user else {}
        return {"host": host, **password}


@pytest.fixture
def hosted():
    fsspec.register_implementation("hosted", HostedFileSystem, clobber=True)
    HostedFileSystem.clear_instance_cache()
    fs = fsspec.filesystem("hosted", host="name:8020")
    fs.pipe("/texts/a.txt", b"first\n")
    fs.pipe("/texts/b/c.txt", b"second\n")
    return fs


@pytest.mark.parametrize("given", ["hosted://name:8020/texts", "hosted://name:8020/texts/",
                                   "hosted://name:8020/", "hosted://name:8020"])  # fmt: skip
def test_a_url_keeps_its_machine(hosted, given):
    files = find_inputs([given], 10, "text")
    places = ["hosted://name:8020/texts/a.txt", "hosted://name:8020/texts/b/c.txt"]
    assert [file.path for file in files] == places
    assert texts(files) == ["first", "second"]
    (one,) = find_inputs([places[0]], 10, "text")
    assert one.path == places[0]


def test_a_chain_of_file_systems_is_kept(tmp_path):
    with zipfile.ZipFile(tmp_path / "texts.zip", "w") as archive:
        archive.writestr("in/a.txt", "first\n")
    given = f"zip://in::{tmp_path}/texts.zip"
    files = find_inputs([given], 10, "text")
    assert [file.path for file in files] == [f"zip://in/a.txt::{tmp_path}/texts.zip"]
    assert texts(files) == ["first"]


def test_a_password_is_not_written_beside_the_vectors(hosted):
    with pytest.raises(InputError, match="a URL contains a password") as caught:
        find_inputs(["hosted://me:secret@name:8020/texts"], 10, "text")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_a_network_failure_is_no_mistake_in_the_input(hosted, monkeypatch, name):
    hosted.pipe("/texts/a.parquet", b"PAR1")

    def unreachable(*_, **__):
        raise OSError(errno.EIO, "connection reset")

    monkeypatch.setattr(HostedFileSystem, "open", unreachable)
    monkeypatch.setattr(HostedFileSystem, "cat_file", unreachable)
    part = Range(0, f"hosted://name:8020/texts/{name}", kind_of(name), 0, 5, 5)
    with pytest.raises(OSError, match="connection reset"):  # a worker tries again
        list(read_rows(part, "text", hashlib.sha256()))
    with pytest.raises(InputError, match="cannot read hosted://name.*connection reset"):
        find_inputs([f"hosted://name:8020/texts/{name}"], 10, "text")
