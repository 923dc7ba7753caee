"""Finding models in folders, in ZIP archives and by name."""

import gzip
import shutil
import zipfile
from pathlib import Path

import pytest

from elmokit import Elmo
from elmokit.errors import (
    FormatError,
    InputError,
    ModelNotFoundError,
    OutOfMemoryError,
)
from elmokit.formats.source import own_errors
from helpers.checkpoints import same_tensors


def test_zip_archives(tiny, tiny_folder, tmp_path):
    """NLPL's layout, at the top of the archive and in a folder of it."""
    for prefix in ("", "144/"):
        path = tmp_path / f"{len(prefix)}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(tiny_folder / "weights.hdf5", prefix + "model.hdf5")
            archive.write(tiny_folder / "options.json", prefix + "options.json")
            archive.writestr(prefix + "meta.json", "{}")
            archive.writestr(prefix + "vocab.txt", "<S>\n</S>\n<UNK>\n")
        elmo = Elmo.load(path)
        assert same_tensors(tiny, elmo)
        assert elmo.format == "bilm-tf HDF5 (ZIP)"
        assert elmo.vocabulary is None  # without a softmax, the vocabulary is ignored


@pytest.mark.parametrize(
    ("root", "others"),
    [
        ("a/b/", []),
        ("model/", ["README.txt"]),
        ("model/", ["__MACOSX/model/._model.hdf5", "__MACOSX/._model"]),
        ("", ["__MACOSX/._model.hdf5", "._options.json", ".DS_Store"]),
    ],
)
def test_odd_zip_archives(tiny, tiny_folder, tmp_path, root, others):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.write(tiny_folder / "weights.hdf5", root + "model.hdf5")
        archive.write(tiny_folder / "options.json", root + "options.json")
        for name in others:
            archive.writestr(name, "something else")
    assert same_tensors(tiny, Elmo.load(tmp_path / "model.zip"))


def test_zipped_native(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    archive = shutil.make_archive(tmp_path / "model", "zip", tmp_path / "model")
    assert same_tensors(tiny, Elmo.load(archive))


def test_models_in_subfolders_are_ignored(tiny, tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    tiny.save(folder / "converted", format="bilm-tf")
    assert same_tensors(tiny, Elmo.load(folder))


def test_names(tiny, tmp_path, monkeypatch):
    tiny.save(tmp_path / "mine")
    monkeypatch.setenv("ELMOKIT_MODELS", str(tmp_path))
    assert same_tensors(tiny, Elmo.load("mine"))
    with pytest.raises(ModelNotFoundError, match="no model 'yours'"):
        Elmo.load("yours")


def test_missing_files(tmp_path, tiny_folder):
    with pytest.raises(ModelNotFoundError, match="there is no model"):
        Elmo.load(tmp_path / "nowhere")
    with pytest.raises(ModelNotFoundError, match=r"there is no weights file .*nothing\.hdf5"):
        Elmo.load(options=tiny_folder / "options.json", weights=tmp_path / "nothing.hdf5")
    with pytest.raises(ModelNotFoundError, match="is a web address .*; download the file"):
        Elmo.load(options="https://example.org/options.json", weights="x")
    with pytest.raises(InputError, match="both options= and weights="):
        Elmo.load(options=tiny_folder / "options.json")
    with pytest.raises(InputError, match="go with options="):
        Elmo.load(tiny_folder, softmax="x")


def test_nothing_known(tmp_path):
    (tmp_path / "readme.txt").write_text("hello")
    with pytest.raises(ModelNotFoundError) as caught:
        Elmo.load(tmp_path)
    for part in ("config.json and model.safetensors", "ELMoForManyLangs", "found readme.txt"):
        assert part in str(caught.value)
    with pytest.raises(FormatError, match="not a readable ZIP archive"):
        Elmo.load(tmp_path / "readme.txt")


def test_unreadable_archives(lm_folder, tmp_path):
    folder = shutil.copytree(lm_folder, tmp_path / "model")
    packed = bytearray(gzip.compress((folder / "vocab.txt").read_bytes()))
    packed[12] ^= 0xFF
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt.gz").write_bytes(packed)
    with pytest.raises(FormatError, match="vocab.txt.gz is damaged"):
        Elmo.load(folder)
    archive = bytearray(Path(shutil.make_archive(tmp_path / "x", "zip", lm_folder)).read_bytes())
    at = archive.find(b"softmax")  # the file's data starts shortly after its name
    archive[at + 40 : at + 80] = bytes(40)
    (tmp_path / "bad.zip").write_bytes(archive)
    with pytest.raises(FormatError, match="cannot unpack .*softmax.hdf5"):
        Elmo.load(tmp_path / "bad.zip")
    with pytest.raises(ModelNotFoundError, match="there is no model ''"):
        Elmo.load("")


def test_too_little_memory_is_not_blamed_on_the_file():
    with (
        pytest.raises(OutOfMemoryError, match="does not fit in memory"),
        own_errors("weights.hdf5 is damaged", "download it again"),
    ):
        raise MemoryError
