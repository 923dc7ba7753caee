"""Archives in tar.gz that are damaged, or that were made to exhaust a machine or leave a folder."""

import gzip
import tarfile

import pytest

from elmokit import Elmo
from elmokit.formats.places import sources
from helpers.allennlp_files import elmo_state, model_files, tar_gz

MEGABYTE = 1 << 20


@pytest.fixture
def files(tiny_folder):
    return model_files(elmo_state(tiny_folder))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tar.gz"


def member(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, b"S"])
def test_links_and_devices_are_refused(files, path, refused, kind):
    weights = files.pop("weights.th")
    files["real.th"] = weights
    link = member("weights.th", kind, "real.th")
    path.write_bytes(tar_gz(files, extra=[(link, b"")]))
    assert "is a link or a device, which is not followed" in refused(path)


def test_nothing_is_written_to_disk(files, path, tmp_path, monkeypatch):
    """Names that lead out of the folder are only names."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for name in ("../escaped", "/escaped", "a/../../escaped"):
        files[name] = b"x"
    extra = [(member("out", tarfile.SYMTYPE, "/"), b""), (member("dev", tarfile.CHRTYPE), b"")]
    path.write_bytes(tar_gz(files, extra=extra))
    assert Elmo.load(path, device="cpu").dim == 16
    assert sorted(tmp_path.rglob("*")) == sorted([*before, path])
    assert not (tmp_path.parent / "escaped").exists()


@pytest.mark.parametrize("name", ["weights.th", "notes.txt"])
def test_bombs(files, path, refused, name):
    files[name] = files.get(name, b"") + bytes(64 * MEGABYTE)
    path.write_bytes(tar_gz(files))
    assert path.stat().st_size < MEGABYTE
    assert "unpacks to" in refused(path)
    data = gzip.decompress(tar_gz(model_files({}))) + bytes(64 * MEGABYTE)  # behind the end
    path.write_bytes(gzip.compress(data, 1))
    assert "unpacks to" in refused(path)


def test_many_members(files, path, refused):
    empty = {f"vocabulary/{i}.txt": b"" for i in range(20_001)}
    path.write_bytes(tar_gz(files | empty, tarfile.USTAR_FORMAT))
    assert "more than 20,000 members" in refused(path)


def test_truncated_archives(files, path, refused):
    packed = tar_gz(files)
    for n in (0, 2, 9, 20, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        path.write_bytes(packed[:n])
        refused(path)
    data = gzip.decompress(packed)
    for n in (100, 512, 700, 1500, len(data) // 2):
        path.write_bytes(gzip.compress(data[:n], 1))
        assert "complete tar.gz archive" in refused(path) or n == 512


def test_flipped_bits_are_found(files, path, refused):
    """A checksum of all bytes is in gzip, one of each header in tar."""
    packed = bytearray(tar_gz(files))
    packed[len(packed) // 2] ^= 4
    path.write_bytes(packed)
    assert "is not a complete tar.gz archive" in refused(path)
    data = bytearray(gzip.decompress(tar_gz(files, tarfile.USTAR_FORMAT)))
    data[512 + 20] ^= 1
    path.write_bytes(gzip.compress(data, 1))
    assert "a header has another checksum than it says" in refused(path)


def with_field(data, at, field):
    """A header with another field, and its checksum."""
    data = bytearray(data)
    data[at : at + len(field)] = field
    start = at // 512 * 512
    header = data[start : start + 148] + b" " * 8 + data[start + 156 : start + 512]
    data[start + 148 : start + 156] = b"%06o\0 " % sum(header)
    return gzip.compress(bytes(data), 1)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (b"77777777777\0", "unpacks to"),
        (b"-0000001000\0", "negative number"),
        (b"\x80" + b"\xff" * 11, "unpacks to"),
        (b"\xff" * 11 + b"\x00", "complete tar.gz archive"),
        (b"xyz\0\0\0\0\0\0\0\0\0", "complete tar.gz archive"),
        (b"00000000000\0", "complete tar.gz archive"),
    ],
)
def test_sizes_that_cannot_be(files, path, refused, field, message):
    data = gzip.decompress(tar_gz(files, tarfile.USTAR_FORMAT))
    path.write_bytes(with_field(data, 512 + 124, field))  # of the first file
    assert message in refused(path)


@pytest.mark.parametrize(
    "records",
    [b"99 path=x\n", b"0 path=x\n", b"-3 path=x\n", b"path=x\n", b"10 size=-1\n", b"x" * 70_000],
)
def test_pax_records_that_cannot_be(files, path, refused, records):
    extra = [(member("x", b"x"), records)]
    extra[0][0].size = len(records)
    held = gzip.decompress(tar_gz({}, tarfile.USTAR_FORMAT, extra))
    path.write_bytes(gzip.compress(held, 1))
    assert "is not a complete tar.gz archive" in refused(path)


def test_records_without_end_take_no_time(files, path, refused):
    """Python's own reader needs hours for a header like this one, or never finishes."""
    records = b"1" * 60_000
    info = member("x", b"x")
    info.size = len(records)
    path.write_bytes(tar_gz({}, tarfile.USTAR_FORMAT, [(info, records)]))
    assert "is not a complete tar.gz archive" in refused(path)


def test_what_is_no_tar(path, refused):
    path.write_bytes(gzip.compress(b"just some text " * 100))
    assert "is not a complete tar.gz archive" in refused(path)
    path.write_bytes(gzip.compress(b""))
    assert "found nothing" in refused(path)


def test_other_formats_in_tar_gz(tiny_folder, path, tiny):
    names = ("options.json", "weights.hdf5")
    path.write_bytes(tar_gz({f"a/{n}": (tiny_folder / n).read_bytes() for n in names}))
    assert Elmo.load(path).format == "bilm-tf HDF5 (tar.gz)"
    assert sources(path)[0].size("a/options.json") == (tiny_folder / "options.json").stat().st_size
