"""Errors for damaged or contradictory files in the published format."""

import copy
import json

import h5py
import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import (
    FormatError,
    ShapeError,
    UnsupportedModelError,
)
from helpers.models import TINY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"options.json is not valid JSON \(line 1, column 2"),
        ("[1]", "contains a JSON list"),
        ("{}", "no char_cnn"),
        ('{"char_cnn": {}}', "has no 'lstm'"),
        ('{"char_cnn": 3, "lstm": {}}', "wrong type"),
        ('{"char_cnn": {"filters": "x"}, "lstm": {}}', "has no 'embedding'"),
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
        ("lstm", "n_layers", 3, "there must be a tensor RNN_0/RNN/MultiRNNCell/Cell2"),
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
        ("char_cnn", "activation", "gelu", "one of relu, tanh, not 'gelu'"),
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
    with pytest.raises(FormatError, match=r"weights.hdf5 is not a complete HDF5 file.*truncated"):
        Elmo.load(broken)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="not a complete HDF5 file"):
        Elmo.load(broken)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinite_weights(broken, value, tiny, tmp_path):
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        file["CNN_high_1/b_carry"][3] = value
    with pytest.raises(FormatError, match="1 NaN or infinite values in CNN_high_1/b_carry"):
        Elmo.load(broken)
    with torch.no_grad():
        tiny.bilm.forward_layers[1].bias[2] = value
    tiny.save(tmp_path / "native")
    with pytest.raises(FormatError, match=r"NaN or infinite values in forward_layers\.1\.bias"):
        Elmo.load(tmp_path / "native")


def test_wrong_character_count(broken):
    with h5py.File(broken / "weights.hdf5", "r+") as file:
        rows = file["char_embed"][()]
        del file["char_embed"]
        file["char_embed"] = np.concatenate([rows, rows])
    with pytest.raises(ShapeError, match=r"char_embed must have shape \(261, 4\).*\(522, 4\)"):
        Elmo.load(broken)
