"""Reading and writing model files, and what is said when they are bad."""

import copy
import gzip
import json
import shutil
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import Elmo
from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.errors import (
    ConfigError,
    FormatError,
    InputError,
    ModelNotFoundError,
    OutputError,
    ShapeError,
    UnsupportedModelError,
)
from elmokit.formats import many_langs, read_model
from elmokit.formats.rounding import restored, rounded
from helpers.models import SENTENCES, TINY, many_langs_folder, write_published


def same_tensors(a: Elmo, b: Elmo) -> bool:
    first, second = a.checkpoint().tensors, b.checkpoint().tensors
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.fixture
def broken(tiny_folder, tmp_path):
    """A copy of the tiny model to break."""
    return shutil.copytree(tiny_folder, tmp_path / "broken")


# Round trips


@pytest.mark.parametrize("format", ["native", "bilm-tf"])
def test_round_trip_is_exact(lm_folder, tmp_path, format):
    elmo = Elmo.load(lm_folder, device="cpu")
    elmo.save(tmp_path / "saved", format=format)
    again = Elmo.load(tmp_path / "saved", device="cpu")
    assert same_tensors(elmo, again)
    assert again.config == elmo.config
    assert again.vocabulary.words == elmo.vocabulary.words
    assert again.checkpoint().checksum() == elmo.checkpoint().checksum()
    for a, b in zip(elmo.encode(SENTENCES, "all"), again.encode(SENTENCES, "all"), strict=True):
        np.testing.assert_array_equal(a, b)


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


def test_native_folder_has_a_model_card(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "README.md", "config.json", "model.safetensors",
    ]  # fmt: skip
    card = (tmp_path / "model/README.md").read_text()
    assert tiny.checkpoint().checksum() in card
    assert f"{tiny.n_parameters:,}" in card


def test_save_replaces_only_when_told(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    with pytest.raises(OutputError, match="exists already"):
        tiny.save(tmp_path / "model")
    tiny.save(tmp_path / "model", overwrite=True)
    assert same_tensors(tiny, Elmo.load(tmp_path / "model"))
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    with pytest.raises(InputError, match="native, bilm-tf"):
        tiny.save(tmp_path / "other", format="onnx")


def test_overwriting_spares_what_is_no_model(tiny, tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/thesis.txt").write_text("three years")
    with pytest.raises(OutputError, match=r"holds thesis\.txt, which is no part of a model"):
        tiny.save(tmp_path / "results", overwrite=True)
    assert (tmp_path / "results/thesis.txt").read_text() == "three years"
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(OutputError, match="give the name of a new folder"):
        tiny.save(".")
    tiny.save(tmp_path / "empty2")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="give the name of a new folder"):
        tiny.save(tmp_path / "file", overwrite=True)


def test_mix_and_tokenizer_survive_the_published_format(tiny_folder, tmp_path):
    elmo = Elmo.load(tiny_folder, tokenizer="english", device="cpu")
    elmo.set_mix([1.0, 2.0, 3.0], gamma=0.5)
    elmo.save(tmp_path / "saved", format="bilm-tf")
    again = Elmo.load(tmp_path / "saved", device="cpu")
    assert again.tokenizer.name == "english"
    np.testing.assert_array_equal(again.encode("don't"), elmo.encode("don't"))


def test_a_failed_save_leaves_the_old_model(tiny, tmp_path, monkeypatch):
    tiny.save(tmp_path / "model")
    before = (tmp_path / "model/model.safetensors").read_bytes()

    def full(*args, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("elmokit.formats.native.save_file", full)
    with pytest.raises(OutputError, match="no room on the disk"):
        tiny.save(tmp_path / "model", overwrite=True)
    assert (tmp_path / "model/model.safetensors").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


# What is found where


def test_zip_archives(tiny, tiny_folder, tmp_path):
    """NLPL's layout, and the same in a folder of the archive."""
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
        assert elmo.vocabulary is None  # a word list without a softmax says nothing


@pytest.mark.parametrize(
    ("root", "beside"),
    [
        ("a/b/", []),
        ("model/", ["README.txt"]),
        ("model/", ["__MACOSX/model/._model.hdf5", "__MACOSX/._model"]),
        ("", ["__MACOSX/._model.hdf5", "._options.json", ".DS_Store"]),
    ],
)
def test_odd_zip_archives(tiny, tiny_folder, tmp_path, root, beside):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.write(tiny_folder / "weights.hdf5", root + "model.hdf5")
        archive.write(tiny_folder / "options.json", root + "options.json")
        for name in beside:
            archive.writestr(name, "something else")
    assert same_tensors(tiny, Elmo.load(tmp_path / "model.zip"))


def test_models_in_folders_of_a_model_do_not_count(tiny, tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    tiny.save(folder / "converted", format="bilm-tf")
    assert same_tensors(tiny, Elmo.load(folder))


def test_several_softmax_files_ask_which(lm_folder, tmp_path):
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


def test_published_file_names(tiny, tiny_folder, tmp_path):
    name = "elmo_2x24_8_24cnn_2xhighway"
    shutil.copy(tiny_folder / "options.json", tmp_path / f"{name}_options.json")
    shutil.copy(tiny_folder / "weights.hdf5", tmp_path / f"{name}_weights.hdf5")
    assert same_tensors(tiny, Elmo.load(tmp_path))


def test_zipped_native(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    archive = shutil.make_archive(tmp_path / "model", "zip", tmp_path / "model")
    assert same_tensors(tiny, Elmo.load(archive))


def test_names(tiny, tmp_path, monkeypatch):
    tiny.save(tmp_path / "mine")
    monkeypatch.setenv("ELMOKIT_MODELS", str(tmp_path))
    assert same_tensors(tiny, Elmo.load("mine"))
    with pytest.raises(ModelNotFoundError, match="no model 'yours'"):
        Elmo.load("yours")


def test_261_characters_as_well_as_262(broken, tiny):
    options = copy.deepcopy(TINY)
    options["char_cnn"]["n_characters"] = 261
    options["n_tokens_vocab"] = 3
    (broken / "options.json").write_text(json.dumps(options))
    assert same_tensors(tiny, Elmo.load(broken))


def test_one_layer_names(tmp_path):
    """bilm-tf leaves MultiRNNCell/Cell0 out of the names of one-layer models."""
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
    """A model trained with bidirectional false, under TensorFlow's own names."""
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
        np.testing.assert_allclose(one, both[..., :8], atol=1e-5)
    elmo.save(tmp_path / "saved", format="bilm-tf")
    assert same_tensors(elmo, Elmo.load(tmp_path / "saved"))
    assert elmo.encode_sentences(["a b"], pooling="first-last").shape == (1, 8)


def test_no_projections_where_widths_agree(tmp_path):
    options = copy.deepcopy(TINY)
    options["lstm"] |= {"dim": 24, "projection_dim": 24}
    write_published(tmp_path / "a", options)
    elmo = Elmo.load(tmp_path / "a")
    assert "forward_layers.0.projection" not in elmo.checkpoint().tensors
    assert "token_encoder.projection.weight" not in elmo.checkpoint().tensors
    elmo.save(tmp_path / "b", format="bilm-tf")
    assert same_tensors(elmo, Elmo.load(tmp_path / "b"))


# ELMoForManyLangs


@pytest.mark.parametrize("word_dim", [0, 5])
def test_many_langs_to_native(tmp_path, word_dim):
    folder = many_langs_folder(tmp_path / "efml", word_dim)
    elmo = Elmo.load(folder)
    assert elmo.format == "ELMoForManyLangs (folder)"
    vectors = elmo.encode(["cab 日 zzz", ""], "all")
    assert vectors[0].shape == (3, 3, 8)
    elmo.save(tmp_path / "native")
    again = Elmo.load(tmp_path / "native")
    assert same_tensors(elmo, again)
    np.testing.assert_array_equal(vectors[0], again.encode(["cab 日 zzz", ""], "all")[0])
    with pytest.raises(UnsupportedModelError, match="cannot hold"):
        elmo.save(tmp_path / "published", format="bilm-tf")
    archive = shutil.make_archive(tmp_path / "zipped", "zip", folder)
    assert same_tensors(elmo, Elmo.load(archive))


def test_many_langs_tables_are_reversible(tmp_path):
    checkpoint = read_model(many_langs_folder(tmp_path / "efml"))
    for name, table in (
        ("token_embedder.pkl", many_langs._embedder_table(checkpoint.config)),
        ("encoder.pkl", many_langs._encoder_table(checkpoint.config)),
    ):
        stored = torch.load(tmp_path / "efml" / name, weights_only=True)
        assert {entry.foreign for entry in table} == set(stored)
        for entry in table:
            back = entry.write(*(checkpoint.tensors[n] for n in entry.native))
            assert torch.equal(back, stored[entry.foreign])


def test_many_langs_errors(tmp_path):
    folder = many_langs_folder(tmp_path / "efml")
    architecture = json.loads((folder / "cnn_tiny.json").read_text())
    architecture["token_embedder"]["name"] = "lstm"
    (folder / "cnn_tiny.json").write_text(json.dumps(architecture))
    with pytest.raises(UnsupportedModelError, match="token_embedder 'lstm'"):
        Elmo.load(folder)
    architecture["token_embedder"] |= {"name": "cnn", "char_dim": 6}
    (folder / "cnn_tiny.json").write_text(json.dumps(architecture))
    with pytest.raises(ShapeError, match=r"char_dim = 6.*\(10, 6\).*\(10, 5\)"):
        Elmo.load(folder)
    (folder / "cnn_tiny.json").unlink()
    with pytest.raises(FormatError, match="points to /somebody/elses/cnn_tiny.json"):
        Elmo.load(folder)


def test_many_langs_released_architecture_is_known(tmp_path):
    """The released archives leave their architecture file out; shapes are still checked."""
    path = "/somewhere/cnn_50_100_512_4096_sample.json"
    folder = many_langs_folder(tmp_path / "efml", config_path=path)
    (folder / "cnn_tiny.json").unlink()
    with pytest.raises(ShapeError, match=r"as built in.*char_dim = 50"):
        Elmo.load(folder)


def test_many_langs_pickle_cannot_run_code(tmp_path):
    import pickle

    folder = many_langs_folder(tmp_path / "efml")

    class Evil:
        def __reduce__(self):
            return print, ("code was run",)

    (folder / "encoder.pkl").write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(FormatError, match="not a whole PyTorch state dict"):
        Elmo.load(folder)


def test_ideographic_space_in_a_dictionary(tmp_path):
    folder = many_langs_folder(tmp_path / "efml")
    text = (folder / "char.dic").read_text(encoding="utf-8").replace("日\t3", "3")
    (folder / "char.dic").write_text(text, encoding="utf-8")
    assert Elmo.load(folder).alphabet.characters[3] == "\u3000"


# Bad files: one sentence each


def test_missing_files(tmp_path, tiny_folder):
    with pytest.raises(ModelNotFoundError, match="there is no model"):
        Elmo.load(tmp_path / "nowhere")
    with pytest.raises(ModelNotFoundError, match=r"there is no weights file .*nothing\.hdf5"):
        Elmo.load(options=tiny_folder / "options.json", weights=tmp_path / "nothing.hdf5")
    with pytest.raises(ModelNotFoundError, match="does not download"):
        Elmo.load(options="https://example.org/options.json", weights="x")
    with pytest.raises(InputError, match="both options= and weights="):
        Elmo.load(options=tiny_folder / "options.json")
    with pytest.raises(InputError, match="go with options="):
        Elmo.load(tiny_folder, softmax="x")


def test_unreadable_archives(lm_folder, tmp_path):
    folder = shutil.copytree(lm_folder, tmp_path / "model")
    packed = bytearray(gzip.compress((folder / "vocab.txt").read_bytes()))
    packed[12] ^= 0xFF
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt.gz").write_bytes(packed)
    with pytest.raises(FormatError, match="vocab.txt.gz is damaged"):
        Elmo.load(folder)
    archive = bytearray(Path(shutil.make_archive(tmp_path / "x", "zip", lm_folder)).read_bytes())
    at = archive.find(b"softmax")  # where a file's data begins is a little behind its name
    archive[at + 40 : at + 80] = bytes(40)
    (tmp_path / "bad.zip").write_bytes(archive)
    with pytest.raises(FormatError, match="damaged"):
        Elmo.load(tmp_path / "bad.zip")
    with pytest.raises(ModelNotFoundError, match="there is no model ''"):
        Elmo.load("")


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
    with pytest.raises(FormatError, match="should be a dataset"):
        Elmo.load(broken)


def test_nothing_known(tmp_path):
    (tmp_path / "readme.txt").write_text("hello")
    with pytest.raises(ModelNotFoundError) as caught:
        Elmo.load(tmp_path)
    for part in ("config.json and model.safetensors", "ELMoForManyLangs", "found readme.txt"):
        assert part in str(caught.value)
    with pytest.raises(FormatError, match="not a readable ZIP archive"):
        Elmo.load(tmp_path / "readme.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"options.json is not valid JSON \(line 1, column 2"),
        ("[1]", "holds a JSON list"),
        ("{}", "no char_cnn"),
        ('{"char_cnn": {}}', "has no 'lstm'"),
        ('{"char_cnn": 3, "lstm": {}}', "wrong type"),
        ('{"char_cnn": {"filters": "x"}, "lstm": {}}', "wrong type"),
    ],
)
def test_bad_json(broken, text, message):
    (broken / "options.json").write_text(text)
    with pytest.raises((FormatError, UnsupportedModelError), match=message):
        Elmo.load(broken)


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("lstm", "dim", 25, r"lstm.dim = 25.*\(16, 100\).*\(16, 96\)"),
        ("lstm", "projection_dim", 9, r"lstm.projection_dim = 9.*\(24, 9\).*\(24, 8\)"),
        ("lstm", "n_layers", 3, "there should be a dataset RNN_0/RNN/MultiRNNCell/Cell2"),
        ("lstm", "n_layers", 0, "n_layers must be 1 or more"),
        (
            "char_cnn",
            "filters",
            [[1, 4], [2, 9], [3, 12]],
            r"filters\[1\] = \[2, 9\].*\(1, 2, 4, 9",
        ),
        ("char_cnn", "embedding", {"dim": 5}, r"embedding.dim = 5.*\(261, 5\).*\(261, 4\)"),
        ("char_cnn", "n_highway", 3, "CNN_high_2/W_carry"),
        ("char_cnn", "n_characters", 100, "n_characters 100; .* 261 .* or 262"),
        ("char_cnn", "activation", "gelu", "relu or tanh, not gelu"),
        ("char_cnn", "max_characters_per_token", 2, "max_characters must be at least 3"),
    ],
)
def test_options_that_contradict_the_weights(broken, section, key, value, message):
    options = copy.deepcopy(TINY)
    options[section][key] = value
    (broken / "options.json").write_text(json.dumps(options))
    with pytest.raises((ShapeError, FormatError), match=message):
        Elmo.load(broken)


def test_truncated_hdf5(broken):
    path = broken / "weights.hdf5"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FormatError, match=r"weights.hdf5 is not a whole HDF5 file.*truncated"):
        Elmo.load(broken)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="not a whole HDF5 file"):
        Elmo.load(broken)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinite_weights(broken, value, tiny, tmp_path):
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        file["CNN_high_1/b_carry"][3] = value
    with pytest.raises(
        FormatError, match="1 values that are NaN or infinite in CNN_high_1/b_carry"
    ):
        Elmo.load(broken)
    with torch.no_grad():
        tiny.bilm.forward_layers[1].bias[2] = value
    tiny.save(tmp_path / "native")
    with pytest.raises(FormatError, match=r"NaN or infinite in forward_layers\.1\.bias"):
        Elmo.load(tmp_path / "native")


def test_wrong_character_count(broken):
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        rows = file["char_embed"][()]
        del file["char_embed"]
        file["char_embed"] = np.concatenate([rows, rows])
    with pytest.raises(
        ShapeError, match=r"char_embed should have the shape \(261, 4\).*\(522, 4\)"
    ):
        Elmo.load(broken)


def test_broken_native(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_text())

    def with_config(change):
        values = copy.deepcopy(config)
        change(values)
        (tmp_path / "model/config.json").write_text(json.dumps(values))
        return tmp_path / "model"

    with pytest.raises(FormatError, match="format_version 9"):
        Elmo.load(with_config(lambda c: c.update(format_version=9)))
    with pytest.raises(FormatError, match="unknown setting colour"):
        Elmo.load(with_config(lambda c: c["context"].update(colour=1)))
    with pytest.raises(ShapeError, match=r"backward_layers.0.bias of shape \(100,\).*\(96,\)"):
        Elmo.load(with_config(lambda c: c["context"].update(cell_dim=25)))
    for section, key, value, message in [
        ("context", "n_layers", "two", "context.n_layers must be a whole number, not 'two'"),
        ("context", "n_layers", 2.0, "context.n_layers must be a whole number, not 2.0"),
        ("context", "skip_connections", "false", "must be true or false, not 'false'"),
        ("context", "forget_bias", "1", "must be a number, not '1'"),
        ("token_encoder", "filters", "x", "token_encoder.filters must be"),
        ("token_encoder", "filters", [[1]], "token_encoder.filters must be"),
        ("token_encoder", "n_characters", 100, "261 with the alphabet utf8, not 100"),
        ("mix", "weights", ["a"], "each of mix.weights must be a number, not 'a'"),
        ("mix", "gamma", "x", "mix.gamma must be a number"),
    ]:
        with pytest.raises(FormatError, match=message):
            Elmo.load(with_config(lambda c, s=section, k=key, v=value: c[s].update({k: v})))
    with pytest.raises(FormatError, match="context must be an object, not None"):
        Elmo.load(with_config(lambda c: c.update(context=None)))
    with pytest.raises(FormatError, match="config.tokenizer must be text, not 5"):
        Elmo.load(with_config(lambda c: c.update(tokenizer=5)))
    with pytest.raises(ShapeError, match=r"no weights .*forward_layers\.2"):
        Elmo.load(with_config(lambda c: c["context"].update(n_layers=3)))
    weights = with_config(lambda c: None) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(FormatError, match="not a whole safetensors file"):
        Elmo.load(tmp_path / "model")


def test_all_wrong_settings_at_once():
    with pytest.raises(ConfigError) as caught:
        TokenEncoderConfig(filters=(), n_highway=-1, activation="gelu", character_dim=0)
    for key in ("filters", "n_highway", "activation", "character_dim"):
        assert f"token_encoder.{key}" in str(caught.value)
    with pytest.raises(ConfigError, match=r"context\.n_layers"):
        ContextConfig(n_layers=0)
    with pytest.raises(ConfigError, match="3 weights"):
        ModelConfig.from_dict({"mix": {"weights": [1.0]}})


@pytest.mark.parametrize(
    ("dtype", "share", "cosine"),
    [("float16", 0.55, 0.999999), ("int8", 0.35, 0.999), ("int4", 0.35, 0.999)],
)
def test_smaller_files(tiny, tmp_path, dtype, share, cosine):
    tiny.save(tmp_path / "whole")
    tiny.save(tmp_path / "small", dtype=dtype)
    sizes = [(tmp_path / n / "model.safetensors").stat().st_size for n in ("whole", "small")]
    assert sizes[1] < share * sizes[0] + 6000  # and the names of the tensors
    again = Elmo.load(tmp_path / "small", device="cpu")
    a, b = tiny.encode("some words here", "all"), again.encode("some words here", "all")
    cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    assert cosine < cosines.min() < 1
    again.save(tmp_path / "again", dtype=dtype)  # rounding once more changes nothing
    twice = Elmo.load(tmp_path / "again", device="cpu")
    np.testing.assert_allclose(again.encode("some words"), twice.encode("some words"), atol=1e-6)
    with pytest.raises(InputError, match="has float32 alone, not"):
        tiny.save(tmp_path / "x", format="bilm-tf", dtype=dtype)
    with pytest.raises(InputError, match="dtype must be float32, float16, int8, int4, not"):
        tiny.save(tmp_path / "x", dtype="int3")


@pytest.mark.parametrize("width", [6, 64, 128])
def test_four_bits(width):
    """The softmax alone is in four bits, as near as sixteen steps a group can be, and stays so."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(50, width, generator=generator) * torch.logspace(-4, 1, 50)[:, None]
    weight[3] = 0
    tensors = {"softmax.weight": weight, "softmax.bias": weight[:, 0], "other.weight": weight}
    stored = rounded(tensors, "int4")
    assert stored["softmax.weight"].shape == (50, width // 2)
    assert stored["other.weight"].dtype == torch.int8
    whole = restored(stored)
    assert set(whole) == set(tensors)
    assert whole["softmax.weight"].shape == weight.shape
    steps = weight.abs().amax(1, keepdim=True) / 7  # of a group no wider than the row
    off = (whole["softmax.weight"] - weight).square().sum(1)
    plain = ((weight / steps.clamp_min(1e-9)).round() * steps - weight).square().sum(1)
    assert (off <= plain * 1.05 + 1e-10).all()
    again = restored(rounded(whole, "int4"))
    torch.testing.assert_close(
        again["softmax.weight"], whole["softmax.weight"], rtol=1e-3, atol=1e-7
    )


def test_a_language_model_in_four_bits(lm_folder, tmp_path):
    """Vectors stay those of int8, and predictions are nearly the same."""
    whole = Elmo.load(lm_folder, device="cpu")
    models = {}
    for dtype in ("int8", "int4"):
        whole.save(tmp_path / dtype, dtype=dtype)
        models[dtype] = Elmo.load(tmp_path / dtype, device="cpu")
    files = [(tmp_path / dtype / "model.safetensors").stat().st_size for dtype in models]
    assert files[1] < files[0]
    a, b = (model.encode(SENTENCES, "all") for model in models.values())
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    exact, eight, four = (m.perplexity(SENTENCES).mean for m in (whole, *models.values()))
    assert four != eight
    assert np.log(four) == pytest.approx(np.log(exact), rel=0.03)  # weights here are random


def test_scales_that_do_not_fit(lm_folder, tmp_path):
    Elmo.load(lm_folder, device="cpu").save(tmp_path / "x", dtype="int8")
    path = tmp_path / "x" / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"softmax.weight.scale": torch.ones(3)}, path)
    with pytest.raises(FormatError, match="scales that do not fit its weights"):
        Elmo.load(tmp_path / "x", device="cpu")
