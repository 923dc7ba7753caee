"""TensorFlow's checkpoint files: their checksums, and files that are damaged or malicious."""

import struct
from contextlib import ExitStack

import numpy as np
import pytest

from elmokit.errors import FormatError, UnsupportedModelError
from elmokit.formats.crc32c import crc32c, masked_crc32c
from elmokit.formats.places import sources
from elmokit.formats.tensor_bundle import open_bundle
from helpers.models import TINY, VOCABULARY, write_published
from helpers.tensor_bundles import (
    MAGIC,
    block,
    checksum,
    entry,
    header,
    index,
    message,
    number,
    varint,
    write_bundle,
    write_checkpoint,
)

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/b": np.float32(2.5),
    "a/bc": np.zeros((0, 4), np.float32),
    "z": np.linspace(-1, 1, 40_000, dtype=np.float32),
}


FILES = ExitStack()


@pytest.fixture(autouse=True)
def _closed_files():
    yield
    FILES.close()


def opened(folder):
    """The checkpoint x of a folder; its files are closed after the test."""
    return FILES.enter_context(open_bundle(sources(folder)[0], "x"))


@pytest.fixture
def bundle(tmp_path):
    write_bundle(tmp_path / "x", ARRAYS, per_block=2)
    return tmp_path


def refused_index(folder, data, message):
    (folder / "x.index").write_bytes(data)
    with pytest.raises(FormatError, match=message) as caught:
        opened(folder)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("data", "expected"),  # of RFC 3720, appendix B.4
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_published_checksums(data, expected):
    assert crc32c(data) == expected


@pytest.mark.parametrize("n", [1, 3, 4, 5, 65_535, 65_536, 65_537, 65_540, 200_003])
def test_checksums_of_every_length(n):
    data = np.random.default_rng(n).integers(0, 256, n, np.uint8).tobytes()
    assert masked_crc32c(data) == checksum(data)


@pytest.mark.parametrize("per_block", [1, 2, 100])
@pytest.mark.parametrize("n_shards", [1, 2])
def test_arrays_are_those_that_were_written(tmp_path, per_block, n_shards):
    write_bundle(tmp_path / "x", ARRAYS, n_shards, per_block=per_block)
    found = opened(tmp_path)
    assert found.names == sorted(ARRAYS)
    assert found.get("b") is None
    for name, array in ARRAYS.items():
        stored = found.get(name)
        assert stored.shape == np.shape(array)
        np.testing.assert_array_equal(stored.read().numpy(), array)


def test_big_endian(tmp_path):
    array = ARRAYS["a"].astype(">f4")
    value = entry(array.view("<f4"), 0, 0)  # the checksum is that of the bytes
    (tmp_path / "x.index").write_bytes(index({"": header(1, 1), "a": value}))
    (tmp_path / "x.data-00000-of-00001").write_bytes(array.tobytes())
    np.testing.assert_array_equal(opened(tmp_path).get("a").read().numpy(), array)


def test_every_flipped_bit_of_the_index_is_found(bundle):
    """Except in what is not read: the empty block, its place, and the zeros before the mark."""
    data = (bundle / "x.index").read_bytes()
    empty = data.index(block([]))
    unread = {*range(empty, empty + len(block([]))), *range(len(data) - 48, len(data) - 8)}
    for at in set(range(len(data))) - unread:
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        refused_index(bundle, bytes(changed), "is not a complete TensorFlow index")
    for at in range(len(data) - 48, len(data) - 8):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        (bundle / "x.index").write_bytes(changed)
        try:
            found = opened(bundle)
        except FormatError:
            continue
        assert found.names == sorted(ARRAYS)


def test_a_truncated_index(bundle):
    data = (bundle / "x.index").read_bytes()
    for n in range(0, len(data), 7):
        refused_index(bundle, data[:n], "the mark at its end is missing")


def test_flipped_bits_and_missing_ends_of_values(bundle):
    path = bundle / "x.data-00000-of-00001"
    data = path.read_bytes()
    for at in (0, 23, 28, 30_000, len(data) - 1):
        changed = bytearray(data)
        changed[at] ^= 64
        path.write_bytes(changed)
        found = opened(bundle)
        name = "a" if at < 24 else "z"
        with pytest.raises(FormatError, match=f"is damaged: the checksum of {name} differs"):
            found.get(name).read()
    path.write_bytes(data[:-1])
    with pytest.raises(FormatError, match="but z ends at byte"):
        opened(bundle).get("z").read()
    path.unlink()
    with pytest.raises(FormatError, match="is missing; put it next to"):
        opened(bundle).get("z").read()


def values(**changed):
    """The values of an index, some of them changed."""
    made = {"": header(), "a": entry(ARRAYS["a"], 0, 0), "b": entry(ARRAYS["a"], 0, 0)}
    return made | changed


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"\x80" * 12, "more than 64 bits"),
        (b"\x08", "cut off"),
        (message(2, b"xyz")[:-1], "cut off"),
        (varint(2 << 3 | 2) + varint(1 << 62), "cut off"),
        (varint(6 << 3 | 5) + b"ab", "cut off"),
        (varint(1 << 3 | 3), "unknown kind"),
        (message(1, b"x"), "bytes where a number belongs"),
        (number(2, 7), "unusual shape"),
        (message(2, number(2, 5)), "unusual shape"),
        (message(2, message(2, number(1, 3)) * 9), "unusual shape"),
    ],
)
def test_entries_that_cannot_be(bundle, value, problem):
    refused_index(bundle, index(values(a=value)), problem)


@pytest.mark.parametrize(
    ("value", "error", "problem"),
    [
        (entry(ARRAYS["a"].astype("<i4"), 0, 0), UnsupportedModelError, "has no float numbers"),
        (entry(ARRAYS["a"], 0, 0, message(7, b"")), UnsupportedModelError, "stored in slices"),
        (entry(ARRAYS["a"], 0, 0, number(5, 28)), FormatError, "does not fit its shape"),
        (entry(ARRAYS["a"], 0, 0, number(5, 1 << 63)), FormatError, "does not fit its shape"),
        (
            entry(ARRAYS["a"], 0, 0, message(2, message(2, number(1, 1 << 62)) * 8)),
            FormatError,
            "does not fit its shape",
        ),
        (entry(ARRAYS["a"], 0, 1 << 62), FormatError, "ends at byte"),
        (entry(ARRAYS["a"], 3, 0), FormatError, "data-00003-of-00001 is missing"),
    ],
)
def test_places_that_cannot_be(bundle, value, error, problem):
    (bundle / "x.index").write_bytes(index(values(a=value)))
    with pytest.raises(error, match=problem):
        opened(bundle).get("a").read()


def table(*blocks, handles=None):
    """An index of blocks as they are given."""
    out, places = b"", []
    for i, made in enumerate(blocks):
        places.append((b"%d" % i, varint(len(out)) + varint(len(made) - 5)))
        out += made
    top, start = block(handles or places), len(out)
    out += top
    footer = varint(0) + varint(0) + varint(start) + varint(len(top) - 5)
    return out + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def raw_block(content, n_restarts=0):
    content += struct.pack("<I", n_restarts) + b"\0"
    return content + struct.pack("<I", checksum(content))


def test_blocks_that_cannot_be(bundle):
    good = block([(b"", header())])
    refused_index(bundle, table(good, block([(b"b", b""), (b"a", b"")])), "not sorted")
    refused_index(bundle, table(good, good), "not sorted")
    refused_index(bundle, index(values(), kind=1), "a block is compressed")
    refused_index(bundle, table(raw_block(b"", 1 << 30)), "shorter than its directory")
    refused_index(bundle, table(raw_block(varint(5) + varint(1) + varint(0) + b"x")), "longer than")
    refused_index(bundle, table(raw_block(varint(0) + varint(1 << 60) + varint(0))), "longer than")
    refused_index(bundle, table(raw_block(b"\xff" * 20)), "more than 64 bits")
    refused_index(bundle, table(block([(b"x" * 1001, b"")])), "longer than")
    refused_index(bundle, table(block([(b"\xff", b"")])), "utf-8")
    far = [(b"0", varint(1 << 40) + varint(5))]
    refused_index(bundle, table(good, handles=far), "ends behind the end of the file")


def test_an_index_that_repeats_a_block_is_quickly_refused(bundle):
    good = block([(b"", header()), *((b"%05d" % i, b"") for i in range(5000))])
    handles = [(b"%06d" % i, varint(0) + varint(len(good) - 5)) for i in range(20_000)]
    refused_index(bundle, table(good, handles=handles), "not sorted")


def test_too_many_names_and_too_large_an_index(bundle):
    many = {f"{i:05d}": b"" for i in range(10_000)}
    refused_index(bundle, index({"": header(), **many}, per_block=500), "too many")
    with open(bundle / "x.index", "r+b") as file:
        file.truncate(1 << 40)  # takes no space on the disk
    with pytest.raises(FormatError, match="but the index of a biLM has at most 1,048,576"):
        opened(bundle)


def test_damaged_checkpoints_are_one_sentence(tmp_path, refused):
    published = write_published(tmp_path / "lm", TINY, vocabulary=VOCABULARY)
    folder = write_checkpoint(tmp_path / "training", published)
    (folder / "model.ckpt-6.index").write_bytes(b"")
    assert "is not a complete TensorFlow index" in refused(folder)
    assert "is not a complete TensorFlow index" in refused(folder / "model.ckpt-6")
