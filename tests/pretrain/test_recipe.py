"""Recipes: wrong settings, and what documentation and package say about them."""

import json
import math
import re
from pathlib import Path

import pytest

from elmokit.cli import recipe_options as given
from elmokit.errors import ConfigError
from elmokit.pretrain.recipe import Recipe, read_toml
from elmokit.pretrain.recipe_sections import TextSettings, TrainingSettings
from elmokit.settings import Mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": {"vocabulary_size": 2}}, "text.vocabulary_size must be 4 or more"),
        (
            {"batch": {"order": "random"}},
            "batch.order must be one of sentences, stream, documents, not 'random'",
        ),
        (
            {"softmax": {"kind": "half"}},
            "softmax.kind must be one of full, sampled, adaptive, not 'half'",
        ),
        (
            {"optimizer": {"betas": [0.9]}},
            "betas must be a list of 2, each a number, not",
        ),
        ({"training": {"epochs": "two"}}, "training.epochs must be a number, not 'two'"),
        ({"optimizer": {"learning_rate": "abc"}}, "rate must be a number or nothing, not 'abc'"),
        ({"training": {"minutes": math.inf}}, "minutes must be above 0, at most 1,000,000,000"),
        (
            {"text": {"tokenizer": "none"}},
            "text.tokenizer must be one of whitespace, .* not",
        ),
        ({"model": 3}, "model must be a section of settings, not 3"),
        ({"model": {"size": ["small"]}}, "unknown size \\['small'\\]"),
        ({"model": {"tokenizer": "english"}}, "model.tokenizer follows from text.tokenizer; set"),
        ({"model": {"vocabulary_size": 9}}, "model.vocabulary_size follows from text.vocabulary_"),
        ({"model": {"softmax_cutoffs": [3]}}, "model.softmax_cutoffs follows from softmax.cutoffs"),
        ({"model": {"token_encoder": {"word_dim": 9, "n_words": 9}}}, "choose model.encoder=words"),
        ({"training": {"recased": 1.5}}, "training.recased must be from 0 to 1"),
        ({"training": {"recased": 0.1}, "encoder": "words"}, "needs a model that reads characters"),
    ],
)
def test_wrong_settings(change, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.from_dict(change)


def test_all_mistakes_at_once(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[trainning]\n[text]\nsize = 3\nmin_count = "x"\n[model.context]\nlayers = 3\n')
    with pytest.raises(ConfigError) as error:
        Recipe.read(path)
    for part in (
        "unknown section trainning",
        "unknown setting size",
        "text.min_count",
        "setting layers",
    ):
        assert part in str(error.value)
    path.write_text("not = = toml")
    with pytest.raises(ConfigError, match="is not TOML"):
        Recipe.read(path)


def test_no_mistake_hides_another():
    model = {
        "encoder": "bytes",
        "depth": 3,
        "token_encoder": {"n_highway": -1},
        "context": {"heads": 2, "n_layers": 0, "kind": "transformer"},
    }
    values = {"model": model, "text": {"size": 3, "min_count": 0}, "batch": {"order": "stream"}}
    with pytest.raises(ConfigError) as error:
        Recipe.from_dict(values)
    for part in (
        "text has the unknown setting size",
        "text.min_count must be 1 or more",
        "context has the unknown setting heads",
        "context.n_layers must be 1 or more",
        "token_encoder.n_highway must be 0 or more",
        "config has the unknown setting depth",
        "model.encoder must be one of char_cnn, words, not 'bytes'",
    ):
        assert part in str(error.value)
    model |= {"context": {"kind": "transformer"}, "token_encoder": {}}
    with pytest.raises(ConfigError, match=r"setting depth.*model.encoder must be"):
        Recipe.from_dict(values)
    del model["depth"]
    with pytest.raises(ConfigError, match=r"model.encoder must be.*order=stream carries a state"):
        Recipe.from_dict(values)


def test_what_is_said_last_counts(tiny_folder):
    """The command line overrides a recipe."""
    in_file = {"text": {"tokenizer": "chinese"}, "training": {"minutes": 5}}
    in_line = given.from_line(
        [], {"text": {"tokenized": True}, "training": {"epochs": 2}}, Mistakes()
    )
    found = Recipe.from_dict(given.merged(in_file, in_line))
    assert found.text == TextSettings(tokenized=True)
    assert found.training == TrainingSettings(epochs=2)
    # a model without a softmax leaves the choice of words
    given.check_words({"text": {"min_count": 3}}, None, str(tiny_folder))


def test_recipes_of_the_package():
    recipes = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
    assert len(recipes) >= 4
    for path in recipes:
        read = Recipe.read(path)
        assert Recipe.from_dict(json.loads(json.dumps(read.to_dict()))) == read
        assert read.changed({}) == read == read.changed(read_toml(path))


@pytest.mark.parametrize("guide", ["train.md", "train.zh.md"])
def test_the_guides_name_every_setting(guide):
    text = (Path(__file__).parents[2] / "docs" / guide).read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| `")]
    settings = Recipe().to_dict()
    model = settings.pop("model")
    sections = settings | {f"model.{name}": model[name] for name in ("token_encoder", "context")}
    sections["model"] = {"size": "", "script": "", "encoder": sections.pop("encoder")}
    derived = {"word_dim", "n_words"}  # not for training
    for section, names in sections.items():
        rows = "".join(line.split("|")[1] for line in table if line.startswith(f"| `{section}."))
        for name in set(names) - derived:
            assert re.search(rf"[`.]{name}`", rows), (section, name)
