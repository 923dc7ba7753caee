"""Saving and loading in the native format."""

import copy
import json

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.errors import (
    ConfigError,
    FormatError,
    InputError,
    OutputError,
    ShapeError,
)
from helpers.checkpoints import same_tensors
from helpers.models import SENTENCES


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


def test_native_folder_has_a_model_card(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "README.md", "config.json", "model.safetensors",
    ]  # fmt: skip
    card = (tmp_path / "model/README.md").read_text()
    assert tiny.checkpoint().checksum() in card
    assert f"{tiny.n_parameters:,}" in card


def test_save_replaces_only_with_overwrite(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    with pytest.raises(OutputError, match="exists.*overwrite=True"):
        tiny.save(tmp_path / "model")
    tiny.save(tmp_path / "model", overwrite=True)
    assert same_tensors(tiny, Elmo.load(tmp_path / "model"))
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    with pytest.raises(InputError, match="native or bilm-tf"):
        tiny.save(tmp_path / "other", format="onnx")


def test_overwrite_keeps_other_files(tiny, tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/thesis.txt").write_text("three years")
    with pytest.raises(OutputError, match=r"thesis\.txt"):
        tiny.save(tmp_path / "results", overwrite=True)
    assert (tmp_path / "results/thesis.txt").read_text() == "three years"
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(OutputError, match="new folder"):
        tiny.save(".")
    tiny.save(tmp_path / "empty2")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="new folder"):
        tiny.save(tmp_path / "file", overwrite=True)


def test_a_failed_save_leaves_the_old_model(tiny, tmp_path, monkeypatch):
    tiny.save(tmp_path / "model")
    before = (tmp_path / "model/model.safetensors").read_bytes()

    def full(*args, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("elmokit.formats.native.save_file", full)
    with pytest.raises(OutputError, match="disk"):
        tiny.save(tmp_path / "model", overwrite=True)
    assert (tmp_path / "model/model.safetensors").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


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
    with pytest.raises(ShapeError, match=r"input_weight of shape \(100, 8\).*\(96, 8\)"):
        Elmo.load(with_config(lambda c: c["context"].update(cell_dim=25)))
    for section, key, value, message in [
        ("context", "n_layers", "two", "context.n_layers must be a whole number, not 'two'"),
        ("context", "n_layers", 2.0, "context.n_layers must be a whole number, not 2.0"),
        ("context", "skip_connections", "false", "must be true or false, not 'false'"),
        ("context", "forget_bias", "1", "must be a number, not '1'"),
        ("token_encoder", "filters", "x", "token_encoder.filters must be"),
        ("token_encoder", "filters", [[1]], "token_encoder.filters must be"),
        ("token_encoder", "n_characters", 100, "261 with alphabet=utf8, not 100"),
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
    with pytest.raises(FormatError, match="not a complete safetensors file"):
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
