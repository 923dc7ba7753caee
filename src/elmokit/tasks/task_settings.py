"""Settings of a task model and its training, read from TOML and checked."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from elmokit.errors import ConfigError, shown
from elmokit.settings import MOST_SEED, Mistakes, build, check_rules, check_types, merge

_MOST = 1_000_000_000
_LAYERS = re.compile(r"none|mix|average|top|\d{1,3}")

Model = TypeVar("Model")
"""Settings of a task's own network."""


_SHARED: dict[str, tuple[Callable[[float], bool], str]] = {
    "hidden_dim": (lambda value: 1 <= value <= 1 << 16, "1 or more"),
    "n_layers": (lambda value: 1 <= value <= 100, "from 1 to 100"),
    "dropout": (lambda value: 0 <= value < 1, "from 0 to below 1"),
    "character_filters": (lambda value: 0 <= value <= 1 << 16, "0 or more"),
}


def check_model(settings: Any, rules: Sequence[tuple[bool, str, str]] = ()) -> None:
    """Check the settings of a task's network.

    Args:
        settings: A dataclass. Fields that many networks have are checked here.
        rules: Rules for its other fields, as for :func:`~elmokit.settings.check_rules`.
    """
    check_types("model", settings)
    own = {field.name for field in dataclasses.fields(settings)}
    known = [
        (holds(getattr(settings, name)), name, wanted)
        for name, (holds, wanted) in _SHARED.items()
        if name in own
    ]
    check_rules("model", [*known, *rules], settings)


@dataclass(frozen=True)
class InputSettings:
    """What a task model knows about a word: [static vector; ELMo]."""

    vectors: str = "none"
    """Static vectors: none, token (the biLM's token layer), or a file of GloVe or word2vec."""
    layers: str = "mix"
    """ELMo's layers: mix (learned weights), average, top, the number of a layer, or none."""
    at: Literal["input", "output", "both"] = "input"
    """Where ELMo enters, if it does: with the words, after the task's own encoder, or both."""
    mix_l2: float = 0.0
    """λ: weight of the squared mix weights in the loss."""
    layer_norm: bool = True
    """Whether each layer's vector of a token is normalised: to mean 0 and variance 1."""
    dropout: float = 0.5
    """Dropout on ELMo and on the token layer."""
    static_dropout: float = 0.2
    """Dropout on the static vectors of a file, which are often narrow, so less suits them."""

    def __post_init__(self) -> None:
        check_types("input", self)
        check_rules(
            "input",
            [
                (bool(self.vectors.strip()), "vectors", "none, token, or a file"),
                (
                    _LAYERS.fullmatch(self.layers) is not None,
                    "layers",
                    "mix, average, top, the number of a layer, or none",
                ),
                (
                    self.layers != "none" or self.vectors != "none",
                    "vectors",
                    "token or a file if input.layers=none: a model needs some vectors",
                ),
                (
                    self.at != "output" or self.vectors != "none",
                    "vectors",
                    "token or a file if input.at=output: the encoder needs some input",
                ),
                (0 <= self.mix_l2 <= _MOST, "mix_l2", "0 or more"),
                (0 <= self.dropout < 1, "dropout", "from 0 to below 1"),
                (0 <= self.static_dropout < 1, "static_dropout", "from 0 to below 1"),
            ],
            self,
        )


@dataclass(frozen=True)
class TuningSettings:
    """Whether and how the biLM learns too."""

    enabled: bool = False
    """Fine-tune the biLM. Otherwise it stays as it is, and its layers are computed once."""
    learning_rate: float = 1e-4
    """Peak learning rate of the biLM's top layer."""
    decay: float = 0.5
    """Factor on the learning rate from each layer to the one below it."""
    gradual: bool = True
    """Whether the biLM's layers are unfrozen one per epoch, the top one first."""

    def __post_init__(self) -> None:
        check_types("tuning", self)
        check_rules(
            "tuning",
            [
                (0 < self.learning_rate <= 1, "learning_rate", "above 0, at most 1"),
                (0 < self.decay <= 1, "decay", "above 0, at most 1"),
            ],
            self,
        )


@dataclass(frozen=True)
class TaskTraining:
    """How a task model is trained."""

    epochs: int = 30
    """Most passes over the training examples."""
    patience: int = 5
    """Training stops after this many epochs without a better score on the dev examples."""
    batch_size: int = 32
    """Examples per step."""
    learning_rate: float = 0.001
    """Peak learning rate of Adam."""
    schedule: Literal["constant", "warmup", "slanted"] = "constant"
    """constant: no change. warmup: rises over the first tenth of all steps, then falls to a
    hundredth. slanted: the same with half of that rise."""
    weight_decay: float = 0.0
    """Decoupled weight decay."""
    clip_norm: float = 5.0
    """Gradients with a larger norm are scaled down to this norm."""
    seed: int = 0
    """The same seed gives the same model; on a CPU, bit for bit."""
    cache_gb: float = 8.0
    """Most gigabytes on disk for ELMo's layers between epochs; the rest is computed again."""

    def __post_init__(self) -> None:
        check_types("training", self)
        check_rules(
            "training",
            [
                (1 <= self.epochs <= _MOST, "epochs", "1 or more"),
                (1 <= self.patience <= _MOST, "patience", "1 or more"),
                (1 <= self.batch_size <= _MOST, "batch_size", "1 or more"),
                (0 < self.learning_rate <= 10, "learning_rate", "above 0, at most 10"),
                (0 <= self.weight_decay <= 10, "weight_decay", "from 0 to 10"),
                (0 < self.clip_norm <= _MOST, "clip_norm", "above 0"),
                (0 <= self.seed <= MOST_SEED, "seed", "0 or more, and below 2^62"),
                (0 <= self.cache_gb <= _MOST, "cache_gb", "0 or more"),
            ],
            self,
        )


@dataclass(frozen=True)
class TaskSettings(Generic[Model]):
    """All settings of a task model."""

    model: Model
    """The task's own network."""
    input: InputSettings = field(default_factory=InputSettings)
    tuning: TuningSettings = field(default_factory=TuningSettings)
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        if self.tuning.enabled and self.input.layers == "none":
            raise ConfigError("tuning.enabled=true needs ELMo; choose input.layers other than none")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON."""
        return dataclasses.asdict(self)

    def changed(self, values: dict[str, Any]) -> TaskSettings[Model]:
        """Return settings with some values changed; one ConfigError names every mistake.

        Args:
            values: Sections by name (model, input, tuning, training), each with the values to
                change.
        """
        if not isinstance(values, dict):
            raise ConfigError(f"settings must be sections, not {shown(values)}")
        kinds = {name: type(getattr(self, name)) for name in _SECTIONS}
        mistakes, built = Mistakes(), {}
        if unknown := sorted(set(values) - set(kinds)):
            mistakes.found.append(
                f"unknown section {', '.join(unknown)}; sections are {', '.join(kinds)}"
            )
        own = self.to_dict()
        for name, kind in kinds.items():
            with mistakes.noted():
                given = values.get(name, {})
                if not isinstance(given, dict):
                    raise ConfigError(f"{name} must be a section of settings, not {given!r}")
                built[name] = build(kind, name, merge(own[name], given))
        mistakes.report()
        return TaskSettings(**built)


_SECTIONS = ("model", "input", "tuning", "training")
