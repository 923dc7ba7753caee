"""Paths, folders and archives that are no models, or that were made to exhaust a machine."""

import gzip
import io
import os
import struct
import zipfile

import pytest

from elmokit import Elmo
from elmokit.formats.places import sources
from elmokit.formats.source import Source

MEGABYTE = 1 << 20


def pack(folder, method=zipfile.ZIP_DEFLATED, prefix="", extra=()):
    """A ZIP archive of a folder, as bytes."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for path in sorted(folder.glob("[!R]*")):  # without README.md, which is not read
            archive.write(path, prefix + path.name)
        for name, data in extra:
            archive.writestr(name, data)
    return bytearray(held.getvalue())


def test_pipes_and_devices_are_refused(tmp_path, native, broken, refused):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(tmp_path / "pipe")
    assert "not a regular file" in refused("/dev/zero")
    assert "no options file" in refused(options=tmp_path / "pipe", weights=tmp_path / "pipe")
    (native / "model.safetensors").unlink()
    os.mkfifo(native / "model.safetensors")
    assert "is not a model" in refused(native)
    (broken / "vocab.txt").symlink_to("/dev/zero")
    assert Elmo.load(broken, device="cpu").dim == 16  # not one of its files


def test_a_folder_is_not_searched_to_the_bottom(tmp_path, monkeypatch, native, refused):
    deep = tmp_path
    for _ in range(30):
        deep = deep / "d"
        deep.mkdir()
        (deep / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (found,) = sources(tmp_path)
    assert max(name.count("/") for name in found.all_names) == 3
    monkeypatch.setattr("elmokit.formats.places._ENTRIES", 5)
    (found,) = sources(tmp_path)
    assert len(found.all_names) < 6
    monkeypatch.chdir(native)
    assert "is not a model" in refused("..")


def test_links_to_folders_and_files_are_followed(native, tmp_path):
    """Caches of downloads consist of links."""
    (tmp_path / "link").symlink_to(native)
    (tmp_path / "linked").mkdir()
    for path in native.iterdir():
        (tmp_path / "linked" / path.name).symlink_to(path)
    assert Elmo.load(tmp_path / "link").dim == Elmo.load(tmp_path / "linked").dim == 16


@pytest.mark.parametrize(
    "name", ["x" * 300, "x" * 253, "a\0b", "~nobody-here/x", "/etc/passwd/x", "\ud800", " "]
)
def test_odd_names(name, refused):
    refused(name)
    refused(options=name, weights=name)


def test_files_that_cannot_be_opened(broken, native, refused, monkeypatch):
    def denied(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("elmokit.formats.source.open", denied, raising=False)
    for arguments in (
        {"model": native},
        {"model": broken},
        {"options": broken / "options.json", "weights": broken / "weights.hdf5"},
    ):
        assert "(Permission denied)" in refused(**arguments)


def test_an_archive_of_many_folders(native, tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(20_000):
            archive.writestr(f"{i}/x/readme.txt", "")
        for file in native.iterdir():
            archive.write(file, f"y/model/{file.name}")
    assert Elmo.load(path).dim == 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/" * 30_000 + "b", "")
    assert len(sources(path)) == 1


@pytest.mark.parametrize(
    ("name", "n"), [("model.safetensors", 100 * MEGABYTE), ("config.json", 30 * MEGABYTE)]
)
def test_archives_that_unpack_to_much_more_are_refused(native, tmp_path, refused, name, n):
    """30 MB of spaces are valid in JSON, and pack into 30 KB."""
    with open(native / name, "ab") as file:
        file.write(b" " * n)
    (tmp_path / "bomb.zip").write_bytes(pack(native))
    assert (tmp_path / "bomb.zip").stat().st_size < MEGABYTE
    message = refused(tmp_path / "bomb.zip")
    assert "unpacks to" in message or "has at most" in message


def test_archives_that_unpack_to_more_than_they_declare(native, tmp_path):
    """No more than the declared size is unpacked."""
    data = pack(native, extra=[("long.txt", b"x" * MEGABYTE)])
    at = data.rfind(b"PK\1\2")
    data[at + 24 : at + 28] = struct.pack("<I", 1000)
    (tmp_path / "lying.zip").write_bytes(data)
    source = sources(tmp_path / "lying.zip")[0]
    with pytest.raises(Exception, match="cannot unpack"):
        source.open("long.txt")


def test_small_text_that_is_compressed_well(native, tmp_path):
    """Zeros are fine while they are few: a model of zeros packs a thousand to one."""
    (native / "notes.txt").write_bytes(b" " * MEGABYTE)
    (tmp_path / "model.zip").write_bytes(pack(native))
    assert sources(tmp_path / "model.zip")[0].text("notes.txt") == " " * MEGABYTE
    assert Elmo.load(tmp_path / "model.zip").dim == 16


@pytest.mark.parametrize("packed", [False, True])
def test_a_word_list_that_unpacks_to_much_more(lm_folder, tmp_path, refused, packed):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("options.json", "weights.hdf5", "softmax.hdf5"):
        (folder / name).write_bytes((lm_folder / name).read_bytes())
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(b"\n" * (64 * MEGABYTE)))
    if packed:
        (tmp_path / "model.zip").write_bytes(pack(folder))
    assert "unpacks to" in refused(tmp_path / "model.zip" if packed else folder)
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(b"\n" * (8 * MEGABYTE)))
    assert "8,388,608 lines, but the weights have" in refused(folder)


def test_files_far_too_large(native, refused):
    for name in ("config.json", "vocabulary.txt"):
        kept = (native / name).read_bytes()
        with open(native / name, "ab") as file:
            file.truncate(1 << 40)  # takes no space on the disk
        assert "has at most" in refused(native)
        (native / name).write_bytes(kept)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, 9])
def test_unusual_compression(native, tmp_path, refused, method):
    data = pack(native, zipfile.ZIP_DEFLATED if method == 9 else method)
    if method == 9:  # Deflate64, which Python cannot write
        for mark, offset in ((b"PK\1\2", 10), (b"PK\3\4", 8)):
            at = data.find(mark)
            data[at + offset : at + offset + 2] = struct.pack("<H", 9)
    (tmp_path / "model.zip").write_bytes(data)
    assert "packed by an unusual method" in refused(tmp_path / "model.zip")


@pytest.mark.parametrize(
    ("offset", "value"),
    [(6, 63), (8, 1), (8, 0x0801), (24, 9), (28, 9), (28, 0), (28, 0xFFFF), (30, 9), (42, 9)],
)
def test_odd_directories_of_archives(native, tmp_path, refused, offset, value):
    """Version, flags (encrypted, UTF-8), size, lengths of name and extra field, place."""
    data = pack(native, prefix="\xe9/")
    at = data.find(b"PK\1\2")
    data[at + offset : at + offset + 2] = struct.pack("<H", value)
    data[at + 46] = 0xFF  # the first letter of the name, not valid in UTF-8
    (tmp_path / "model.zip").write_bytes(data)
    refused(tmp_path / "model.zip")


def test_long_names_are_cut(broken, tmp_path, refused):
    (broken / "options.json").rename(tmp_path / "options")
    for prefix in ("x" * 60_000, "a\nb" * 100):
        with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
            archive.write(tmp_path / "options", prefix + "options.json")
            archive.writestr(prefix + ".hdf5", "not HDF5")
        assert "…" in refused(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("y" * 60_000, "")
    assert "yyy…" in refused(tmp_path / "model.zip")


def test_many_files_of_one_kind(broken, tmp_path, refused):
    for i in range(40):
        (broken / f"x{i}.hdf5").write_bytes((broken / "weights.hdf5").read_bytes())
    assert "exactly one HDF5 file" in refused(broken)


def test_lines():
    class Text(Source):
        def text(self, name, most=0):
            return name

    source = Text(None, {}, "folder")
    assert source.lines("a\nb\n", 2) == source.lines("a\nb", 2) == ["a", "b"]
    assert source.lines("", 0) == []
    assert source.lines("\n", 1) == [""]
