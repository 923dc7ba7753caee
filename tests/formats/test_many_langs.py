"""Models in the format of ELMoForManyLangs."""

import json
import shutil

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import (
    FormatError,
    ShapeError,
    UnsupportedModelError,
)
from elmokit.formats import many_langs, read_model
from elmokit.formats.torch_layout import lstms_table
from helpers.checkpoints import same_tensors
from helpers.models import many_langs_folder


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
    with pytest.raises(UnsupportedModelError, match="cannot store"):
        elmo.save(tmp_path / "published", format="bilm-tf")
    archive = shutil.make_archive(tmp_path / "zipped", "zip", folder)
    assert same_tensors(elmo, Elmo.load(archive))


def test_many_langs_tables_are_reversible(tmp_path):
    checkpoint = read_model(many_langs_folder(tmp_path / "efml"))
    for name, table in (
        ("token_embedder.pkl", many_langs._embedder_table(checkpoint.config)),
        ("encoder.pkl", lstms_table(checkpoint.config)),
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
    """Released archives lack the architecture file; shapes are still checked."""
    path = "/somewhere/cnn_50_100_512_4096_sample.json"
    folder = many_langs_folder(tmp_path / "efml", config_path=path)
    (folder / "cnn_tiny.json").unlink()
    with pytest.raises(ShapeError, match=r"built in.*char_dim = 50"):
        Elmo.load(folder)


def test_many_langs_pickle_cannot_run_code(tmp_path):
    import pickle

    folder = many_langs_folder(tmp_path / "efml")

    class Evil:
        def __reduce__(self):
            return print, ("code was run",)

    (folder / "encoder.pkl").write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(FormatError, match="not a complete PyTorch file"):
        Elmo.load(folder)


def test_ideographic_space_in_a_dictionary(tmp_path):
    folder = many_langs_folder(tmp_path / "efml")
    text = (folder / "char.dic").read_text(encoding="utf-8").replace("日\t3", "3")
    (folder / "char.dic").write_text(text, encoding="utf-8")
    assert Elmo.load(folder).alphabet.characters[3] == "\u3000"
