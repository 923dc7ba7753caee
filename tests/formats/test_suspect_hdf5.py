"""HDF5 files that take values from elsewhere, declare more than they have, or are damaged."""

import json
import re
import zlib

import h5py
import numpy as np
import pytest

from elmokit import Elmo
from helpers.checkpoints import same_tensors

NAME = "CNN_proj/W_proj"  # (24, 8)
SHAPE = (24, 8)
VALUES = np.zeros(SHAPE, np.float32)


def virtual(file, folder):
    layout = h5py.VirtualLayout(SHAPE, "f4")
    layout[...] = h5py.VirtualSource(str(folder / "other.hdf5"), "x", SHAPE)
    file.create_virtual_dataset(NAME, layout)


def gzip_bomb(**keywords):
    def make(file, folder):
        dataset = file.create_dataset(NAME, SHAPE, "f4", compression="gzip", **keywords)
        dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(1 << 26)))

    return make


def committed(file, folder):
    file[NAME] = np.dtype("f4")


def link(kind, *target):
    return lambda file, folder: file.__setitem__(NAME, kind(*target))


def made(*arguments, **keywords):
    return lambda file, folder: file.create_dataset(NAME, *arguments, **keywords)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (virtual, "stored in another file"),
        (made(SHAPE, "f4", external=[("/etc/passwd", 0, 768)]), "stored in another file"),
        (link(h5py.ExternalLink, "other.hdf5", "/x"), "is a link, which is not followed"),
        (link(h5py.SoftLink, "/nowhere"), "is a link, which is not followed"),
        (link(h5py.SoftLink, "/char_embed"), "is a link, which is not followed"),
        (made(SHAPE, "f4", chunks=(4, 8)), "never written"),
        (made(SHAPE, "f4"), "declares 768 bytes, but the file has 0"),
        (made(SHAPE, "f4", chunks=(1 << 13, 1 << 13), maxshape=(None, None)), "never written"),
        (gzip_bomb(chunks=SHAPE), "unpack to more than their size"),
        (gzip_bomb(chunks=SHAPE, fletcher32=True), "unpack to more than their size"),
        (made(data=VALUES, compression="lzf"), "compressed by an unusual method"),
        (made(data=VALUES.astype("i4")), "float numbers, not int32"),
        (made(data=VALUES.astype("c8")), "float numbers, not complex64"),
        (made(SHAPE, np.dtype([("x" * 5000, "f4")])), "float numbers, not .*…"),
        (made((24,), np.dtype(("f4", (8,)))), "float numbers, not"),
        (made(SHAPE, h5py.vlen_dtype("f4")), "float numbers, not object"),
        (made(data="text"), "float numbers, not object"),
        (made(data=3.0), r"must have shape \(24, 8\), but it has \(\)"),
        (made(data=h5py.Empty("f4")), "is empty"),
        (made(data=VALUES.astype("f8") + 1e300), "192 NaN or infinite values"),
        (committed, "must be a dataset"),
        (lambda file, folder: file.create_group(NAME), "must be a dataset, but it is a group"),
        (lambda file, folder: None, "there must be a tensor CNN_proj/W_proj"),
    ],
)
def test_refused_datasets(broken, refused, change, message):
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        del file[NAME]
        change(file, broken)
    assert re.search(message, refused(broken))


def test_links_in_the_middle_of_a_name(broken, tmp_path, refused):
    broken_weights = broken / "weights.hdf5"
    other = tmp_path / "elsewhere.hdf5"
    other.write_bytes(broken_weights.read_bytes())
    with h5py.File(broken_weights, "r+") as file:
        del file["CNN_proj"]
        file["CNN_proj"] = h5py.ExternalLink(str(other), "/CNN_proj")
    assert "is a link" in refused(broken)
    with h5py.File(broken_weights, "r+") as file:
        del file["char_embed"]
        file["char_embed"] = h5py.ExternalLink(str(other), "/char_embed")
    assert "is a link" in refused(broken)


@pytest.mark.parametrize(
    "how",
    [
        {"chunks": True},
        {"compression": "gzip", "shuffle": True},
        {"chunks": (5, 3), "compression": "gzip", "maxshape": (None, None)},
        {"fletcher32": True},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"dtype": "f8"},
        {"dtype": ">f4"},
    ],
)
def test_ordinary_ways_of_storing_are_read(tiny, broken, how):
    """Chunks, gzip, checksums and other floats, as h5repack makes them."""
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        for name in (NAME, "char_embed"):
            values = file[name][()]
            del file[name]
            file.create_dataset(name, data=values, **how)
    assert same_tensors(tiny, Elmo.load(broken, device="cpu"))


def test_values_that_compress_too_well(broken, refused):
    """A megabyte of zeros in a kilobyte: no trained weights, and no reason to allocate them."""
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        del file["char_embed"]
        file.create_dataset("char_embed", data=np.zeros((261, 1000), "f4"), compression="gzip")
    options = json.loads((broken / "options.json").read_text())
    options["char_cnn"]["embedding"]["dim"] = 1000
    (broken / "options.json").write_text(json.dumps(options))
    assert "declares 1,044,000 bytes" in refused(broken)


def test_softmax_files(lm_folder, tmp_path, refused):
    files = {"options": lm_folder / "options.json", "weights": lm_folder / "weights.hdf5"}
    files |= {"softmax": tmp_path / "softmax.hdf5", "vocabulary": lm_folder / "vocab.txt"}
    for change in (
        lambda f: f.create_dataset("softmax/b", data=3.0),
        lambda f: f.create_dataset("softmax/b", data=h5py.Empty("f4")),
        lambda f: f.create_dataset("softmax/b", shape=(1 << 40,), dtype="f4", chunks=(1 << 20,)),
        lambda f: f.__setitem__("softmax", h5py.ExternalLink(str(lm_folder), "softmax")),
        lambda f: f.create_group("softmax/b"),
        lambda f: None,
    ):
        with h5py.File(tmp_path / "softmax.hdf5", "w") as file:
            change(file)
        refused(**files)


@pytest.mark.parametrize("at", [8, 13, 24, 40, 48, 56, 64, 96, 200, 800, 2000])
def test_damaged_structure(broken, refused, at):
    """Superblock, object headers, heaps and B-trees with sizes and addresses beyond the file."""
    path = broken / "weights.hdf5"
    data = bytearray(path.read_bytes())
    for damage in (b"\xff" * 8, b"\x7f" + b"\xff" * 7, bytes(8), b"\0\0\0\0\0\0\0\x7f"):
        changed = data[:at] + damage + data[at + 8 :]
        path.write_bytes(changed)
        try:
            elmo = Elmo.load(broken, device="cpu")
        except Exception:
            refused(broken)
        else:
            assert np.isfinite(elmo.encode("a b")).all()
