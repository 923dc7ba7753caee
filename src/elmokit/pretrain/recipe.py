"""A recipe: every setting that decides a training run, read from TOML and checked."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from elmokit.config import ContextConfig, ModelConfig, published_size
from elmokit.errors import ConfigError
from elmokit.pretrain.recipe_sections import (
    BatchSettings,
    OptimizerSettings,
    SoftmaxSettings,
    TextSettings,
    TrainingSettings,
)
from elmokit.settings import Mistakes, build, check_rules, merge

_SECTIONS = {
    "text": TextSettings,
    "batch": BatchSettings,
    "softmax": SoftmaxSettings,
    "optimizer": OptimizerSettings,
    "training": TrainingSettings,
}

_DERIVED = {
    "tokenizer": "text.tokenizer",
    "vocabulary_size": "text.vocabulary_size",
    "softmax_cutoffs": "softmax.cutoffs",
}
"""Settings of a model that follow from other settings of a recipe."""


@dataclass(frozen=True)
class Recipe:
    """All settings of a run."""

    model: ModelConfig = field(default_factory=lambda: published_size("small"))
    text: TextSettings = field(default_factory=TextSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    encoder: Literal["char_cnn", "words"] = "char_cnn"
    """char_cnn: character CNN, as in ELMo. words: one embedding per word of the vocabulary. In
    TOML this is ``model.encoder``."""

    def __post_init__(self) -> None:
        mistakes, model = Mistakes(), self.model
        with mistakes.noted():
            check_rules("model", [], self)  # model.encoder
        with mistakes.noted():
            check_context(self.batch.order, model.context)
        if model.token_encoder.word_dim:
            mistakes.found.append(
                "model.token_encoder can only be trained with word_dim=0; for word embeddings, "
                "choose model.encoder=words"
            )
        with mistakes.noted():
            check_recased(self.training, self.encoder == "char_cnn")
        mistakes.report()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Recipe:
        """The inverse of :meth:`to_dict`; one ConfigError names every mistake.

        ``model`` may name a published size as ``size`` and list only what differs from it.
        """
        mistakes, built = Mistakes(), {}
        if unknown := sorted(set(values) - set(_SECTIONS) - {"model", "encoder"}):
            known = ", ".join(["model", *_SECTIONS])
            mistakes.found.append(f"unknown section {', '.join(unknown)}; sections are {known}")
        for name, kind in _SECTIONS.items():
            with mistakes.noted():
                built[name] = build(kind, name, values.get(name, {}))
        with mistakes.noted():
            model = _section(values, "model")
            given = model.pop("encoder", "char_cnn")
            built["encoder"] = values.get("encoder", given)
            if given == "words" and "token_encoder" in model:
                mistakes.found.append(
                    "model.token_encoder sets up a character CNN, which model.encoder=words does "
                    "not use; leave out one of them"
                )
            built["model"] = _model(model)
        with mistakes.noted():  # checks what must fit together, with defaults for wrong sections
            made = cls(**built)
        mistakes.report()
        return made

    def changed(self, values: dict[str, Any]) -> Recipe:
        """Return a recipe with some settings changed; values as for :meth:`from_dict`."""
        own, model = self.to_dict(), _section(values, "model")
        if "size" in model:
            own["model"] = published_size(model.pop("size")).to_dict()
        if "encoder" in model:
            values = values | {"encoder": model.pop("encoder")}
        return Recipe.from_dict(merge(own, values | {"model": model}))

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """Read a recipe from a TOML file."""
        return cls.from_dict(read_toml(path))


def check_context(order: str, context: ContextConfig) -> None:
    """Raise if context layers cannot be trained, or not on batches in this order."""
    mistakes = Mistakes()
    if order != "sentences" and not context.carries_state:
        mistakes.found.append(
            f"batch.order={order} carries a state from batch to batch, but a {context.label} has "
            "none; choose batch.order=sentences, or model.context.kind=lstm"
        )
    if not context.trainable:
        mistakes.found.append(
            "model.context.projection_dim and model.context.cell_dim must differ for training, but "
            f"both are {context.cell_dim}"
        )
    mistakes.report()


def check_recased(training: TrainingSettings, characters: bool) -> None:
    """Raise if words should be read in another case by a model that reads no characters."""
    if training.recased and not characters:
        raise ConfigError(
            "training.recased needs a model that reads characters, because a word in another case "
            "is an unknown word to any other; leave it out"
        )


def read_toml(path: Path) -> dict[str, Any]:
    """Read the values of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the recipe {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the recipe {path} is not TOML: {error}") from error


def parse_toml(text: str) -> dict[str, Any] | None:
    """Parse TOML; None if the text is not valid TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _section(values: dict[str, Any], name: str) -> dict[str, Any]:
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{name} must be a section of settings, not {section!r}")
    return dict(section)


def _model(values: dict[str, Any]) -> ModelConfig:
    mistakes, own = Mistakes(), ModelConfig().to_dict()
    for name, instead in _DERIVED.items():
        given = values.pop(name, own[name])
        if given not in (own[name], []):  # tuples are lists in JSON
            mistakes.found.append(f"model.{name} follows from {instead}; set that instead")
    sizes = published_size("small")
    with mistakes.noted():
        sizes = published_size(values.pop("size", "small"))
    with mistakes.noted():
        made = ModelConfig.from_dict(merge(sizes.to_dict(), values))
    mistakes.report()
    return made
