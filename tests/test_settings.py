"""Validation of settings: types, literals and rules."""

from dataclasses import dataclass
from typing import Literal

import pytest

from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.errors import ConfigError
from elmokit.pretrain.recipe_sections import OptimizerSettings, SoftmaxSettings
from elmokit.settings import Mistakes, build, check_rules, flatten, merge


@dataclass(frozen=True)
class Drink:
    kind: Literal["tea", "coffee"] = "tea"
    milk: Literal["cow", "oat"] | None = None
    sizes: tuple[int, ...] = (1,)
    degrees: float = 60.0

    def __post_init__(self):
        check_rules("drink", [(self.degrees > 0, "degrees", "above 0")], self)


def test_values_from_json():
    made = build(Drink, "drink", {"kind": "coffee", "milk": "oat", "sizes": [1, 2], "degrees": 70})
    assert made == Drink("coffee", "oat", (1, 2), 70.0)
    assert type(made.degrees) is float
    assert build(Drink, "drink", {}) == Drink()


def test_all_mistakes_in_one_error():
    with pytest.raises(ConfigError) as error:
        build(Drink, "drink", {"kind": "milk", "milk": 3, "sizes": ["x"], "degrees": 0, "cup": 1})
    for part in (
        "drink has the unknown setting cup; known settings are degrees, kind, milk, sizes",
        "drink.kind must be one of tea, coffee, not 'milk'",
        "drink.milk must be one of cow, oat or nothing, not 3",
        "each of drink.sizes must be a whole number, not 'x'",
        "drink.degrees must be above 0, not 0.0",
    ):
        assert part in str(error.value)
    with pytest.raises(ConfigError, match="drink must be an object, not 3"):
        build(Drink, "drink", 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OptimizerSettings(name="sgd"), "optimizer.name must be one of muon, adamw, adagr"),
        (lambda: SoftmaxSettings("half"), "softmax.kind must be one of full, .*, not 'half'"),
        (lambda: ContextConfig(kind=3), "context.kind must be one of lstm, transformer, not 3"),
        (lambda: TokenEncoderConfig(alphabet=["utf8"]), "alphabet must be one of utf8, codepoints"),
    ],
)
def test_literals_are_checked_in_python_too(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_single_mistake_keeps_its_class():
    mistakes = Mistakes()
    with mistakes.noted():
        raise ConfigError("wrong")
    with pytest.raises(ConfigError, match="^wrong$"):
        mistakes.report()
    Mistakes().report()


def test_merge_and_flatten():
    merged = merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4}, "d": {"e": 5}})
    assert merged == {"a": {"b": 4, "c": 2}, "d": {"e": 5}}
    assert flatten(merged) == {"a.b": 4, "a.c": 2, "d.e": 5}


def test_layers_are_counted_with_the_token_layer():
    assert ModelConfig().n_layers == ModelConfig().context.n_layers + 1 == 3


def test_what_context_layers_can_do():
    lstm, transformer = ContextConfig(), ContextConfig(kind="transformer")
    assert (lstm.label, lstm.inner_label) == ("LSTM", "cells")
    assert (transformer.label, transformer.inner_label) == ("transformer", "feed-forward")
    for name in ("carries_state", "adds_input", "quantizable"):
        assert getattr(lstm, name)
        assert not getattr(transformer, name)
    assert lstm.trainable
    assert not ContextConfig(n_layers=1).adds_input
    assert not ContextConfig(skip_connections=False).adds_input
    assert not ContextConfig(cell_dim=512).trainable
    assert ContextConfig(kind="transformer", cell_dim=512).trainable
