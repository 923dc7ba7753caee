"""Models in the published format of AllenNLP and bilm-tf."""

import copy
import gzip
import json
import shutil

import h5py
import numpy as np
import pytest

from elmokit import Elmo
from elmokit.errors import (
    FormatError,
)
from helpers.checkpoints import same_tensors
from helpers.models import SENTENCES, TINY, write_published


def test_published_to_native_and_back_is_the_same_file(lm_folder, tmp_path):
    Elmo.load(lm_folder).save(tmp_path / "native")
    Elmo.load(tmp_path / "native").save(tmp_path / "back", format="bilm-tf")
    for name in ("weights.hdf5", "softmax.hdf5"):
        with h5py.File(lm_folder / name) as old, h5py.File(tmp_path / "back" / name) as new:
            names = []
            old.visit(names.append)
            assert names
            for dataset in names:
                if isinstance(old[dataset], h5py.Dataset):
                    np.testing.assert_array_equal(old[dataset][()], new[dataset][()])
    written = json.loads((tmp_path / "back/options.json").read_text())
    assert written == json.loads((lm_folder / "options.json").read_text())


def test_mix_and_tokenizer_survive_the_published_format(tiny_folder, tmp_path):
    elmo = Elmo.load(tiny_folder, tokenizer="english", device="cpu")
    elmo.set_mix([1.0, 2.0, 3.0], gamma=0.5)
    elmo.save(tmp_path / "saved", format="bilm-tf")
    again = Elmo.load(tmp_path / "saved", device="cpu")
    assert again.tokenizer.name == "english"
    np.testing.assert_array_equal(again.encode("don't"), elmo.encode("don't"))


def test_several_softmax_files_are_an_error(lm_folder, tmp_path):
    folder = shutil.copytree(lm_folder, tmp_path / "model")
    shutil.copy(folder / "softmax.hdf5", folder / "softmax2.hdf5")
    with pytest.raises(FormatError, match="several softmax or vocabulary files"):
        Elmo.load(folder)


def test_nlpl_folder_with_packed_vocabulary(lm_folder, tmp_path):
    folder = shutil.copytree(lm_folder, tmp_path / "model")
    with gzip.open(folder / "vocab.txt.gz", "wb") as file:
        file.write((folder / "vocab.txt").read_bytes())
    (folder / "vocab.txt").unlink()
    (folder / "weights.hdf5").rename(folder / "any_name.hdf5")
    assert len(Elmo.load(folder).vocabulary) == 10
    files = {"options": folder / "options.json", "weights": folder / "any_name.hdf5"}
    files |= {"softmax": folder / "softmax.hdf5", "vocabulary": folder / "vocab.txt.gz"}
    assert len(Elmo.load(**files).vocabulary) == 10


def test_published_file_names(tiny, tiny_folder, tmp_path):
    name = "elmo_2x24_8_24cnn_2xhighway"
    shutil.copy(tiny_folder / "options.json", tmp_path / f"{name}_options.json")
    shutil.copy(tiny_folder / "weights.hdf5", tmp_path / f"{name}_weights.hdf5")
    assert same_tensors(tiny, Elmo.load(tmp_path))


def test_261_characters_as_well_as_262(broken, tiny):
    options = copy.deepcopy(TINY)
    options["char_cnn"]["n_characters"] = 261
    options["n_tokens_vocab"] = 3
    (broken / "options.json").write_text(json.dumps(options))
    assert same_tensors(tiny, Elmo.load(broken))


def test_one_layer_names(tmp_path):
    """bilm-tf omits MultiRNNCell/Cell0 from the names of one-layer models."""
    options = copy.deepcopy(TINY)
    del options["lstm"]["n_layers"]
    write_published(tmp_path / "a", options)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with h5py.File(tmp_path / "b/weights.hdf5", "r+") as file:
        for d in range(2):
            file.move(f"RNN_{d}/RNN/MultiRNNCell/Cell0/LSTMCell", f"RNN_{d}/RNN/LSTMCell")
            del file[f"RNN_{d}/RNN/MultiRNNCell"]
    a, b = Elmo.load(tmp_path / "a"), Elmo.load(tmp_path / "b")
    assert a.n_layers == 2
    assert same_tensors(a, b)


def test_forward_only_model(tmp_path, tiny_folder, tiny):
    """Forward-only models use TensorFlow's own names."""
    folder = shutil.copytree(tiny_folder, tmp_path / "forward")
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        for layer in range(2):
            old, new = f"RNN_0/RNN/MultiRNNCell/Cell{layer}", f"rnn/MultiRNNCell/Cell{layer}"
            for a, b in (("W_0", "kernel"), ("B", "bias"), ("W_P_0", "projection/kernel")):
                file[f"{new}/LSTMCell/{b}"] = file[f"{old}/LSTMCell/{a}"][()]
        del file["RNN_0"], file["RNN_1"]
    elmo = Elmo.load(folder)
    assert elmo.dim == 8
    for one, both in zip(elmo.encode(SENTENCES, "all"), tiny.encode(SENTENCES, "all"), strict=True):
        np.testing.assert_allclose(
            one, both[..., :8], rtol=1e-4, atol=1e-5 * np.abs(both).max(initial=0)
        )
    elmo.save(tmp_path / "saved", format="bilm-tf")
    assert same_tensors(elmo, Elmo.load(tmp_path / "saved"))
    assert elmo.encode_sentences(["a b"], pooling="first-last").shape == (1, 8)


def test_no_projection_if_widths_agree(tmp_path):
    options = copy.deepcopy(TINY)
    options["lstm"] |= {"dim": 24, "projection_dim": 24}
    write_published(tmp_path / "a", options)
    elmo = Elmo.load(tmp_path / "a")
    assert "forward_layers.0.projection" not in elmo.checkpoint().tensors
    assert "token_encoder.projection.weight" not in elmo.checkpoint().tensors
    elmo.save(tmp_path / "b", format="bilm-tf")
    assert same_tensors(elmo, Elmo.load(tmp_path / "b"))


def test_big_endian_and_double_weights(broken, tiny):
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        for name, kind in (("char_embed", ">f4"), ("CNN_proj/b_proj", "<f8")):
            values = file[name][()]
            del file[name]
            file.create_dataset(name, data=values.astype(kind))
    assert same_tensors(tiny, Elmo.load(broken))
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        del file["CNN_proj/b_proj"]
        file.create_group("CNN_proj/b_proj")
    with pytest.raises(FormatError, match="must be a dataset"):
        Elmo.load(broken)
