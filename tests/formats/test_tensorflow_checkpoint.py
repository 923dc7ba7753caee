"""Training checkpoints of bilm-tf, compared with the same model in HDF5."""

import copy
import json
import shutil
import zipfile

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.errors import FormatError, InputError, ModelNotFoundError, ShapeError
from helpers.checkpoints import same_tensors
from helpers.models import SCORED_SENTENCES, SENTENCES, TINY, VOCABULARY, write_published
from helpers.numbers import assert_close
from helpers.processes import run_python
from helpers.tensor_bundles import graph_tensors, write_bundle, write_checkpoint


@pytest.fixture
def training(lm_folder, tmp_path):
    """The folder of a training, which a test may change."""
    return write_checkpoint(tmp_path / "training", lm_folder)


@pytest.mark.parametrize("n_shards", [1, 3])
def test_vectors_and_softmax_are_those_of_the_published_files(lm, lm_folder, tmp_path, n_shards):
    elmo = Elmo.load(write_checkpoint(tmp_path / "x", lm_folder, n_shards=n_shards), device="cpu")
    assert elmo.format == "TensorFlow checkpoint (folder)"
    assert elmo.checkpoint().checksum() == lm.checkpoint().checksum()
    vectors = zip(elmo.encode(SENTENCES, "all"), lm.encode(SENTENCES, "all"), strict=True)
    for found, expected in vectors:
        assert_close(found, expected)
    scores = zip(elmo.score(SCORED_SENTENCES), lm.score(SCORED_SENTENCES), strict=True)
    for found, expected in scores:
        assert_close(found.forward, expected.forward)
        assert_close(found.backward, expected.backward)
    assert elmo.checkpoint().vocabulary == VOCABULARY


@pytest.mark.parametrize("end", ["", ".index", ".meta", ".data-00000-of-00001"])
def test_any_of_its_files_names_it(lm, training, end):
    shutil.copy(training / "options.json", training / "weights.hdf5")  # another model beside it
    assert same_tensors(lm, Elmo.load(training / f"model.ckpt-6{end}", device="cpu"))


def test_in_an_archive(lm, training, tmp_path):
    shutil.make_archive(tmp_path / "a", "zip", training)
    shutil.make_archive(tmp_path / "a", "gztar", tmp_path, "training")
    for name in ("a.zip", "a.tar.gz"):
        assert same_tensors(lm, Elmo.load(tmp_path / name, device="cpu"))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_names_of_one_layer_and_of_one_direction(tmp_path, n_layers, bidirectional):
    options = copy.deepcopy(TINY)
    options["lstm"]["n_layers"] = n_layers
    both = write_published(tmp_path / "both", options, vocabulary=VOCABULARY)
    folder = write_checkpoint(tmp_path / "x", both, bidirectional=bidirectional)
    elmo, full = Elmo.load(folder, device="cpu"), Elmo.load(both, device="cpu")
    expected = full.checkpoint().tensors
    if not bidirectional:
        expected = {k: v for k, v in expected.items() if not k.startswith("backward")}
    found = elmo.checkpoint().tensors
    assert found.keys() == expected.keys()
    assert all((found[name] == expected[name]).all() for name in found)
    assert elmo.config.context.bidirectional == bidirectional


def test_the_latest_of_several(lm, training, lm_folder):
    other = {name: array * 2 for name, array in graph_tensors(lm_folder).items()}
    write_bundle(training / "model.ckpt-3", other)
    assert same_tensors(lm, Elmo.load(training, device="cpu"))
    assert not same_tensors(lm, Elmo.load(training / "model.ckpt-3", device="cpu"))
    (training / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')
    with pytest.raises(ModelNotFoundError, match="several checkpoints .*'model.ckpt-9' is missing"):
        Elmo.load(training)
    (training / "checkpoint").unlink()
    with pytest.raises(ModelNotFoundError, match="no file says which to use; give the path of one"):
        Elmo.load(training)


def test_without_a_vocabulary_the_softmax_is_left_out(lm, training):
    (training / "vocab.txt").rename(training.parent / "words")
    elmo = Elmo.load(training, device="cpu")
    assert elmo.vocabulary is None
    assert elmo.format == ("TensorFlow checkpoint (folder; softmax left out: no vocabulary file)")
    files = {"options": training / "options.json", "weights": training / "model.ckpt-6"}
    assert Elmo.load(**files, device="cpu").vocabulary is None
    with_words = Elmo.load(**files, vocabulary=training.parent / "words", device="cpu")
    assert same_tensors(lm, with_words)
    with pytest.raises(InputError, match="softmax= goes with HDF5 weights"):
        Elmo.load(**files, softmax=training / "options.json")


def test_double_and_half_precision(lm, lm_folder, tmp_path):
    folder = write_checkpoint(tmp_path / "x", lm_folder)
    tensors = graph_tensors(lm_folder)
    kinds = {"lm/char_embed": np.float64, "lm/softmax/b": np.float16}
    for name, kind in kinds.items():
        tensors[name] = tensors[name].astype(kind)
    write_bundle(folder / "model.ckpt-6", tensors)
    found, expected = Elmo.load(folder).checkpoint().tensors, lm.checkpoint().tensors
    half = expected["softmax.bias"].half().float()
    assert all((found[k] == (half if k == "softmax.bias" else expected[k])).all() for k in found)


def test_convert_and_reload_in_a_new_process(cli, training, tmp_path, lm):
    done = cli("convert", training / "model.ckpt-6", tmp_path / "new")
    assert done.returncode == 0
    assert "from TensorFlow checkpoint (folder)" in done.stdout
    code = (
        "import sys; from elmokit import Elmo; elmo = Elmo.load(sys.argv[1], device='cpu');"
        "print(elmo.checkpoint().checksum(), len(elmo.vocabulary))"
    )
    again = run_python("-c", code, str(tmp_path / "new"))
    assert again.stdout.split() == [lm.checkpoint().checksum(), str(len(VOCABULARY))]


def test_files_that_contradict_each_other(training, lm_folder):
    options = json.loads((training / "options.json").read_text())
    (training / "options.json").write_text(json.dumps(options | {"n_tokens_vocab": 11}))
    with pytest.raises(ShapeError, match="n_tokens_vocab 11, but .* a softmax of 10 words"):
        Elmo.load(training)
    options["lstm"]["dim"] = 25
    (training / "options.json").write_text(json.dumps(options))
    with pytest.raises(ShapeError, match="RNN_0/rnn/multi_rnn_cell/cell_0/lstm_cell/kernel must"):
        Elmo.load(training)
    options["lstm"] |= {"dim": 24, "n_layers": 3}
    (training / "options.json").write_text(json.dumps(options))
    with pytest.raises(ShapeError, match="a tensor lm/RNN_0/rnn/multi_rnn_cell/cell_2/lstm_cell"):
        Elmo.load(training)
    options["lstm"]["n_layers"] = 2
    (training / "options.json").write_text(json.dumps(options))
    with open(training / "vocab.txt", "a") as file:
        file.write("more\n")
    with pytest.raises(ShapeError, match=r"index has a softmax of 10 words but .*vocab.txt has 11"):
        Elmo.load(training)
    tensors = graph_tensors(lm_folder)
    del tensors["lm/softmax/b"]
    write_bundle(training / "model.ckpt-6", tensors)
    with pytest.raises(FormatError, match="no tensor lm/softmax/b of one dimension"):
        Elmo.load(training)


def test_missing_and_double_files(training):
    shutil.copy(training / "vocab.txt", training / "vocab-2016.txt")
    assert Elmo.load(training, device="cpu").vocabulary is not None  # vocab.txt comes first
    (training / "vocab.txt").rename(training / "vocab-2015.txt")
    with pytest.raises(FormatError, match="several vocabulary files"):
        Elmo.load(training)
    (training / "options.json").rename(training / "a-options.json")
    shutil.copy(training / "a-options.json", training / "b-options.json")
    with pytest.raises(FormatError, match="several options files"):
        Elmo.load(training)
    for path in training.glob("*options.json"):
        path.unlink()
    with pytest.raises(FormatError, match=r"no options.json; pass the file as options="):
        Elmo.load(training)


def test_a_zip_without_the_values(training, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in ("model.ckpt-6.index", "options.json"):
            archive.write(training / name, name)
    with pytest.raises(FormatError, match=r"data-00000-of-00001 is missing; put it next to"):
        Elmo.load(tmp_path / "x.zip")
