"""Everything that decides a training run, as one checked set of settings."""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from elmokit.config import (
    ContextConfig,
    Mistakes,
    ModelConfig,
    build,
    check_rules,
    merge,
    published_size,
)
from elmokit.errors import ConfigError
from elmokit.text.tokenizers import TOKENIZERS

_RATE_OF_ONE_CELL, _ADAGRAD_RATE = 0.175, 0.2


@dataclass(frozen=True)
class TextSettings:
    """How text becomes words, and which of them the model predicts."""

    tokenizer: str | None = None
    """A name of elmokit.text.tokenizers; None for that of the model gone on with, else english.
    Tokens of tokenised text are those between white space."""
    tokenized: bool = False
    """Whether each line is one sentence, its tokens apart by white space."""
    vocabulary_size: int = 100_000
    """Most words of the softmax, the three marks included."""
    min_count: int = 2
    """Words that occur less often are not among them."""

    def __post_init__(self) -> None:
        check_rules(
            "text",
            [
                (self.tokenizer in (None, *TOKENIZERS), "tokenizer", " or ".join(TOKENIZERS)),
                (
                    not self.tokenized or self.tokenizer in (None, "whitespace"),
                    "tokenizer",
                    "left out with tokenised text (text.tokenized, --tokenized)",
                ),
                (self.vocabulary_size > 3, "vocabulary_size", "4 or more"),
                (self.min_count >= 1, "min_count", "1 or more"),
            ],
            self,
        )


@dataclass(frozen=True)
class BatchSettings:
    """What a step of training sees."""

    order: str = "sentences"
    """sentences (each alone, from a fresh state), stream (shuffled sentences one after another, the
    state carried on, as the published models were trained) or documents (likewise, in the order
    of the text)."""
    tokens: int = 32_768
    """Tokens of a batch, on all machines together."""
    steps: int = 20
    """Tokens of a row through which gradients go back, in streams."""
    max_length: int = 128
    """Longer sentences are cut, where each is alone."""

    def __post_init__(self) -> None:
        orders = ("sentences", "stream", "documents")
        check_rules(
            "batch",
            [
                (self.order in orders, "order", " or ".join(orders)),
                (self.tokens >= 1, "tokens", "1 or more"),
                (self.steps >= 1, "steps", "1 or more"),
                (self.max_length >= 1, "max_length", "1 or more"),
            ],
            self,
        )


@dataclass(frozen=True)
class SoftmaxSettings:
    """How the words are predicted in training."""

    kind: str = "sampled"
    """full, sampled (some words stand for all, as published) or adaptive (rare words clustered)."""
    samples: int = 8192
    """Words drawn for each direction and step, where sampled."""
    full_from: float = 1.0
    """Share of the run after which no words are drawn any more and all count, where sampled."""
    cutoffs: tuple[int, ...] = (10_000, 40_000)
    """Where the clusters begin, where adaptive; those above the vocabulary's size are left out."""
    frequencies: bool = True
    """Whether the biases of a new softmax begin as the log frequencies of its words, or at zero."""

    def __post_init__(self) -> None:
        kinds = ("full", "sampled", "adaptive")
        rising = list(self.cutoffs) == sorted({c for c in self.cutoffs if c > 0})
        check_rules(
            "softmax",
            [
                (self.kind in kinds, "kind", " or ".join(kinds)),
                (self.samples >= 1, "samples", "1 or more"),
                (0 <= self.full_from <= 1, "full_from", "from 0 to 1"),
                (bool(self.cutoffs) and rising, "cutoffs", "rising numbers"),
            ],
            self,
        )


@dataclass(frozen=True)
class OptimizerSettings:
    """How the weights follow the gradients."""

    name: str = "muon"
    """muon, for all matrices but embeddings and the softmax, with adamw for these and the rest;
    adamw alone; or adagrad."""
    learning_rate: float | None = None
    """The highest; None for what suits the optimizer and the model's width, which
    :meth:`for_width` fills in."""
    warmup: int = 300
    """Steps over which the rate rises from nothing; a tenth of all steps if that is fewer. With
    minutes, the first twenty tell how many there will be."""
    schedule: str = "cosine"
    """cosine (falls to a hundredth at the end) or constant."""
    weight_decay: float = 0.01
    """Pull of matrices towards zero, with muon and adamw."""
    momentum: float = 0.95
    """Memory of muon."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Memories of adamw."""
    accumulator: float = 1.0
    """What adagrad's sum of squares begins with."""
    clip_norm: float = 1.0
    """Gradients whose norm is above are scaled down to it."""
    loss_scale: float = 1.0
    """The mean loss a token is multiplied by this; with adagrad and clipping it matters."""

    def __post_init__(self) -> None:
        names = ("muon", "adamw", "adagrad")
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        check_rules(
            "optimizer",
            [
                (self.name in names, "name", " or ".join(names)),
                (0 < rate < math.inf, "learning_rate", "above 0, and finite"),
                (self.warmup >= 0, "warmup", "0 or more"),
                (self.schedule in ("cosine", "constant"), "schedule", "cosine or constant"),
                (0 <= self.weight_decay < math.inf, "weight_decay", "0 or more, and finite"),
                (0 <= self.momentum < 1, "momentum", "from 0 to below 1"),
                (all(0 <= b < 1 for b in self.betas), "betas", "from 0 to below 1"),
                (self.clip_norm > 0, "clip_norm", "above 0"),
                (0 <= self.accumulator < math.inf, "accumulator", "0 or more, and finite"),
                (0 < self.loss_scale < math.inf, "loss_scale", "above 0, and finite"),
            ],
            self,
        )

    def for_width(self, cell_dim: int) -> OptimizerSettings:
        """These settings with a learning rate: the one set, or one for so many cells.

        A step of Muon changes the gates' matrix (4H, P) by 0.2 · √(4H) · rate in every direction
        (see muon.py), 0.07 by this rule, at which a model of 1,920 cells was trained well. At 0.175
        it learned well for 1,800 steps, and fell apart then. For AdamW alone the rule is near to
        what was best for 256 and for 2,048 cells.
        """
        if self.learning_rate is not None:
            return self
        rate = _ADAGRAD_RATE if self.name == "adagrad" else _RATE_OF_ONE_CELL / math.sqrt(cell_dim)
        return dataclasses.replace(self, learning_rate=rate)


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how carefully."""

    epochs: float = 10.0
    """Passes over the text."""
    minutes: float | None = None
    """Instead of epochs: how long to train, evaluations not counted."""
    dropout: float = 0.1
    """Share of each layer's input, and of the top output, set to zero."""
    recased: float = 0.0
    """Share of sentences that are read in another case, one half in capitals and one in small
    letters, while the words to predict stay as they are."""
    seed: int = 0
    """The same seed gives the same run, on a CPU to the last bit."""
    precision: str = "auto"
    """float32, bfloat16 (products under autocast), or auto: bfloat16 on a GPU."""
    evaluate_every: float = 0.1
    """Share of the run between evaluations on the validation text."""
    save_every: float = 5.0
    """Minutes between checkpoints."""

    def __post_init__(self) -> None:
        precisions = ("auto", "float32", "bfloat16")
        minutes = 1.0 if self.minutes is None else self.minutes
        check_rules(
            "training",
            [
                (0 < self.epochs < math.inf, "epochs", "above 0, and finite"),
                (0 < minutes < math.inf, "minutes", "above 0, and finite"),
                (0 <= self.dropout < 1, "dropout", "from 0 to below 1"),
                (0 <= self.recased <= 1, "recased", "from 0 to 1"),
                (0 <= self.seed < 1 << 62, "seed", "0 or more, and below 2^62"),
                (self.precision in precisions, "precision", " or ".join(precisions)),
                (0 < self.evaluate_every <= 1, "evaluate_every", "above 0, at most 1"),
                (self.save_every >= 0, "save_every", "0 or more"),
            ],
            self,
        )


@dataclass(frozen=True)
class Recipe:
    """All settings of a run."""

    model: ModelConfig = field(default_factory=lambda: published_size("small"))
    text: TextSettings = field(default_factory=TextSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    encoder: str = "char_cnn"
    """char_cnn, ELMo's own, or words: a vector for each word of the vocabulary."""

    def __post_init__(self) -> None:
        encoders = ("char_cnn", "words")
        mistakes, model = Mistakes(), self.model
        with mistakes.noted():
            check_rules(
                "model", [(self.encoder in encoders, "encoder", " or ".join(encoders))], self
            )
        with mistakes.noted():
            check_context(self.batch.order, model.context)
        if model.token_encoder.alphabet != "utf8" or model.token_encoder.word_dim:
            mistakes.found.append(
                "model.token_encoder can be trained with alphabet=utf8 and word_dim=0 alone; for "
                "vectors of whole words, choose model.encoder=words"
            )
        with mistakes.noted():
            check_recased(self.training, self.encoder == "char_cnn")
        mistakes.report()

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Recipe:
        """The inverse of :meth:`to_dict`; one error names everything that is wrong.

        Instead of all sizes, ``model`` may name a published one as ``size``, and change some.
        """
        sections = {
            "text": TextSettings,
            "batch": BatchSettings,
            "softmax": SoftmaxSettings,
            "optimizer": OptimizerSettings,
            "training": TrainingSettings,
        }
        mistakes, built = Mistakes(), {}
        if unknown := sorted(set(values) - set(sections) - {"model", "encoder"}):
            known = ", ".join(["model", *sections])
            mistakes.found.append(f"there is no section {', '.join(unknown)}; known are {known}")
        for name, kind in sections.items():
            with mistakes.noted():
                built[name] = build(kind, name, values.get(name, {}))
        with mistakes.noted():
            model = _section(values, "model")
            given = model.pop("encoder", "char_cnn")
            built["encoder"] = values.get("encoder", given)
            if given == "words" and "token_encoder" in model:
                mistakes.found.append(
                    "model.encoder=words leaves no use for model.token_encoder, which is for "
                    "characters; leave out either"
                )
            built["model"] = _model(model)
        with mistakes.noted():  # what has to fit together, as far as it is there
            made = cls(**built)
        mistakes.report()
        return made

    def changed(self, values: dict[str, Any]) -> Recipe:
        """A recipe with those settings changed that are given, as :meth:`from_dict` takes them."""
        own, model = self.to_dict(), _section(values, "model")
        if "size" in model:
            own["model"] = published_size(model.pop("size")).to_dict()
        if "encoder" in model:
            values = values | {"encoder": model.pop("encoder")}
        return Recipe.from_dict(merge(own, values | {"model": model}))

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """A recipe from a TOML file."""
        return cls.from_dict(read_toml(path))


def check_context(order: str, context: ContextConfig) -> None:
    """Raise where context layers cannot be trained, or not on batches in this order."""
    mistakes = Mistakes()
    if order != "sentences" and context.kind == "transformer":
        mistakes.found.append(
            f"batch.order={order} carries a state from batch to batch, which a transformer does "
            "not have; choose batch.order=sentences, or an LSTM"
        )
    if context.kind == "lstm" and not context.has_projection:
        mistakes.found.append(
            "training needs a context.projection_dim that differs from context.cell_dim, which "
            f"is {context.cell_dim} too"
        )
    mistakes.report()


def check_recased(training: TrainingSettings, characters: bool) -> None:
    """Raise where words are to be read in another case by a model that knows no characters."""
    if training.recased and not characters:
        raise ConfigError(
            "training.recased is for models that read characters, to which a word in capitals is "
            "more than an unknown word; leave it out"
        )


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the recipe {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the recipe {path} is not TOML: {error}") from error


def parse_toml(text: str) -> dict[str, Any] | None:
    """The values of a piece of TOML; None where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _section(values: dict[str, Any], name: str) -> dict[str, Any]:
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{name} must be a section of settings, not {section!r}")
    return dict(section)


_DERIVED = {
    "tokenizer": "text.tokenizer",
    "vocabulary_size": "text.vocabulary_size",
    "softmax_cutoffs": "softmax.cutoffs",
}
"""Settings of a model that follow from others of a recipe."""


def _model(values: dict[str, Any]) -> ModelConfig:
    mistakes, own = Mistakes(), ModelConfig().to_dict()
    for name, instead in _DERIVED.items():
        given = values.pop(name, own[name])
        if given not in (own[name], []):  # JSON has lists where there were tuples
            mistakes.found.append(f"model.{name} follows from {instead}; choose that instead")
    sizes = published_size("small")
    with mistakes.noted():
        sizes = published_size(values.pop("size", "small"))
    with mistakes.noted():
        made = ModelConfig.from_dict(merge(sizes.to_dict(), values))
    mistakes.report()
    return made
