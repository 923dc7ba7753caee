"""Settings of task models."""

from pathlib import Path

import pytest

from elmokit.errors import ConfigError
from elmokit.pretrain.recipe import read_toml
from elmokit.tasks import NerTagger, task_class
from elmokit.tasks.schedules import rate_factor
from elmokit.tasks.task_settings import InputSettings


def test_changes():
    settings = NerTagger.defaults.changed({"training": {"epochs": 3}, "model": {"hidden_dim": 7}})
    assert settings.training.epochs == 3
    assert settings.model.hidden_dim == 7
    assert settings.input == NerTagger.defaults.input
    assert NerTagger.defaults.changed(settings.to_dict()) == settings


def test_all_mistakes_at_once():
    with pytest.raises(ConfigError) as caught:
        NerTagger.defaults.changed(
            {"training": {"epochs": 0, "colour": 1}, "input": {"layers": "best"}, "other": {}}
        )
    for part in ("unknown section other", "unknown setting colour", "input.layers must be mix"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": "none"}, "a model needs some vectors"),
        ({"at": "output"}, "the encoder needs some input"),
        ({"dropout": 1.0}, "from 0 to below 1"),
        ({"static_dropout": -0.1}, "input.static_dropout must be from 0 to below 1"),
        ({"dropout": "much"}, "input.dropout must be"),
        ({"mix_l2": float("nan")}, "0 or more"),
    ],
)
def test_rules(settings, message):
    with pytest.raises(ConfigError, match=message):
        InputSettings(**settings)


def test_tuning_needs_elmo():
    values = {"input": {"layers": "none", "vectors": "token"}, "tuning": {"enabled": True}}
    with pytest.raises(ConfigError, match=r"tuning\.enabled=true needs ELMo"):
        NerTagger.defaults.changed(values)


def test_schedules():
    assert {rate_factor("constant", step, 100) for step in range(100)} == {1.0}
    for name, rise in (("warmup", 10), ("slanted", 5)):
        factors = [rate_factor(name, step, 100) for step in range(100)]
        assert max(factors) == factors[rise] == 1.0
        assert factors[:rise] == sorted(factors[:rise])
        assert factors[rise:] == sorted(factors[rise:], reverse=True)
        assert 0 < factors[-1] < 0.05


def test_recipes_of_the_package():
    recipes = sorted((Path(__file__).parents[2] / "recipes" / "tasks").glob("*.toml"))
    assert [path.stem for path in recipes] == ["sentiment"]
    for path in recipes:
        settings = task_class(path.stem).defaults.changed(read_toml(path))
        assert task_class(path.stem).defaults.changed(settings.to_dict()) == settings
        assert f"elmokit train {path.stem} --recipe recipes/tasks/{path.name}" in path.read_text()
