"""Sizes and settings of a model, as small frozen dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from elmokit.errors import ConfigError, ElmoKitError

N_BYTE_CHARACTERS = 261
"""256 bytes, then sentence start and end, word start and end, and padding."""

PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
"""(width, count) of the convolutions of every model published by AllenNLP."""


@dataclass(frozen=True)
class TokenEncoderConfig:
    """The character CNN that turns one word into one vector."""

    filters: tuple[tuple[int, int], ...] = PUBLISHED_FILTERS
    """(width in characters, number of filters) of each convolution, in order."""
    n_highway: int = 1
    """Highway layers after the convolutions."""
    character_dim: int = 16
    """Width of a character's vector."""
    n_characters: int = N_BYTE_CHARACTERS
    """Different characters, without the row of zeros for padded tokens."""
    max_characters: int = 50
    """Characters of a word, its two markers included; the rest is cut off."""
    activation: str = "relu"
    """relu or tanh, after the maximum over positions."""
    alphabet: str = "utf8"
    """utf8 (bytes, AllenNLP and bilm-tf) or codepoints (ELMoForManyLangs)."""
    word_dim: int = 0
    """Width of a whole-word vector put before the CNN's features; 0 for none."""
    n_words: int = 0
    """Different words with a vector of their own, where word_dim is not 0."""

    def __post_init__(self) -> None:
        check_rules(
            "token_encoder",
            [
                (bool(self.filters) or self.word_dim > 0, "filters", "one filter or more"),
                (all(w > 0 and n > 0 for w, n in self.filters), "filters", "positive numbers"),
                (self.n_highway >= 0, "n_highway", "0 or more"),
                (self.character_dim > 0, "character_dim", "1 or more"),
                (self.n_characters > 0, "n_characters", "1 or more"),
                (
                    self.alphabet != "utf8" or self.n_characters == N_BYTE_CHARACTERS,
                    "n_characters",
                    f"{N_BYTE_CHARACTERS} with the alphabet utf8",
                ),
                (
                    self.max_characters >= max(3, self.widest),
                    "max_characters",
                    f"at least 3 and the widest filter ({self.widest})",
                ),
                (self.activation in ("relu", "tanh"), "activation", "relu or tanh"),
                (self.alphabet in ("utf8", "codepoints"), "alphabet", "utf8 or codepoints"),
                (self.word_dim >= 0, "word_dim", "0 or more"),
                ((self.n_words > 0) == (self.word_dim > 0), "n_words", "set when word_dim is"),
            ],
            self,
        )

    @property
    def n_filters(self) -> int:
        """Width F of the CNN's features."""
        return sum(count for _, count in self.filters)

    @property
    def widest(self) -> int:
        """Characters the widest filter sees."""
        return max((width for width, _ in self.filters), default=0)


@dataclass(frozen=True)
class ContextConfig:
    """The forward and backward networks that read the sentence."""

    kind: str = "lstm"
    """lstm, ELMo's own, or transformer, which attends to what it has read so far."""
    n_layers: int = 2
    """Layers of each direction."""
    cell_dim: int = 4096
    """Width H of the memory cell, or of a transformer's feed-forward layers."""
    projection_dim: int = 512
    """Width P of token vectors and of each direction's output."""
    cell_clip: float | None = 3.0
    """Memory cells are kept within ± this; None for no clipping."""
    proj_clip: float | None = 3.0
    """Projected outputs are kept within ± this; None for no clipping."""
    skip_connections: bool = True
    """Whether layers after the first add their input to their output."""
    forget_bias: float = 1.0
    """Added to the forget gate when running, beside the stored bias."""
    bidirectional: bool = True
    """False for a forward language model alone."""
    n_heads: int = 8
    """Heads of attention, of a transformer."""

    def __post_init__(self) -> None:
        clips = [c for c in (self.cell_clip, self.proj_clip) if c is not None]
        attends = self.kind == "transformer"
        check_rules(
            "context",
            [
                (self.n_layers >= 1, "n_layers", "1 or more"),
                (self.cell_dim >= 1, "cell_dim", "1 or more"),
                (self.projection_dim >= 1, "projection_dim", "1 or more"),
                (self.kind in ("lstm", "transformer"), "kind", "lstm or transformer"),
                (self.n_heads >= 1, "n_heads", "1 or more"),
                (
                    not attends or self.projection_dim % (2 * max(1, self.n_heads)) == 0,
                    "projection_dim",
                    f"a multiple of twice the {self.n_heads} heads",
                ),
                (all(c > 0 for c in clips), "cell_clip and proj_clip", "above 0, or null"),
            ],
            self,
        )

    @property
    def has_projection(self) -> bool:
        """Whether the cell's output is projected; the published layout leaves it out at H == P."""
        return self.cell_dim != self.projection_dim

    @property
    def n_directions(self) -> int:
        """2, or 1 for a forward model."""
        return 2 if self.bidirectional else 1

    @property
    def output_dim(self) -> int:
        """Width D of every layer."""
        return self.projection_dim * self.n_directions


@dataclass(frozen=True)
class MixConfig:
    """The layer weights a model is used with when asked for its mix."""

    weights: tuple[float, ...] | None = None
    """One number a layer, before the softmax; None for equal weights."""
    gamma: float = 1.0
    """The scale of the mix."""


@dataclass(frozen=True)
class ModelConfig:
    """All of a model but its weights."""

    token_encoder: TokenEncoderConfig = field(default_factory=TokenEncoderConfig)
    context: ContextConfig = field(default_factory=ContextConfig)
    tokenizer: str = "whitespace"
    """How raw strings are split into tokens: a name of elmokit.text.tokenizers."""
    vocabulary_size: int = 0
    """Words of the softmax; 0 for a model without one."""
    softmax_cutoffs: tuple[int, ...] = ()
    """Where the clusters of an adaptive softmax begin; none for a full one."""
    mix: MixConfig = field(default_factory=MixConfig)

    def __post_init__(self) -> None:
        n_weights, n_layers = len(self.mix.weights or ()), self.context.n_layers + 1
        check_rules(
            "model",
            [
                (self.vocabulary_size >= 0, "vocabulary_size", "0 or more"),
                (n_weights in (0, n_layers), "mix", f"{n_layers} weights, one a layer"),
                (
                    list(self.softmax_cutoffs) == sorted(set(self.softmax_cutoffs))
                    and all(0 < c < self.vocabulary_size - 1 for c in self.softmax_cutoffs),
                    "softmax_cutoffs",
                    "rising, and below the vocabulary's size",
                ),
            ],
            self,
        )

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """The inverse of :meth:`to_dict`; every wrong name or type is a ConfigError."""
        parts: dict[str, Any] = {
            "token_encoder": TokenEncoderConfig,
            "context": ContextConfig,
            "mix": MixConfig,
        }
        mistakes, built = Mistakes(), {}
        for name, kind in parts.items():
            with mistakes.noted():
                built[name] = build(kind, name, values.get(name, {}))
        others = {key: value for key, value in values.items() if key not in parts}
        with mistakes.noted():
            made = build(cls, "config", others | built)
        mistakes.report()
        return made


_SIZES = {"small": (1024, 128, 1), "medium": (2048, 256, 1), "original": (4096, 512, 2)}


def published_size(name: str) -> ModelConfig:
    """The sizes AllenNLP published: small, medium or original (also that of the 5.5B model)."""
    if name not in tuple(_SIZES):  # in a tuple, as a recipe may give anything
        raise ConfigError(f"there is no size {name!r}; choose one of {', '.join(_SIZES)}")
    cell_dim, projection_dim, n_highway = _SIZES[name]
    return ModelConfig(
        token_encoder=TokenEncoderConfig(n_highway=n_highway),
        context=ContextConfig(cell_dim=cell_dim, projection_dim=projection_dim),
    )


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Nested settings with some of them changed."""
    merged = dict(base)
    for key, value in changes.items():
        old = base.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


class Mistakes:
    """What is wrong here and there, to be reported all at once."""

    def __init__(self) -> None:
        self.found: list[str] = []
        """A sentence each."""
        self._first: ElmoKitError | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """An error inside is kept for later."""
        try:
            yield
        except ElmoKitError as error:
            self.found.append(str(error))
            self._first = self._first or error

    def report(self) -> None:
        """Raise one error with all that was noted, if anything was; a single one as it was."""
        if self._first is not None and len(self.found) == 1:
            raise self._first
        if self.found:
            raise ConfigError("; ".join(self.found)) from self._first


def build(kind: Any, name: str, values: Any) -> Any:
    """A dataclass from plain values, each checked against the field's type; all errors in one."""
    if not isinstance(values, dict):
        raise ConfigError(f"{name} must be an object, not {values!r}")
    types = get_type_hints(kind)
    mistakes, typed = Mistakes(), {}
    if unknown := sorted(set(values) - set(types)):
        mistakes.found.append(
            f"{name} has the unknown setting {', '.join(unknown)}; known are "
            f"{', '.join(sorted(types))} (a newer ElmoKit may have written it)"
        )
    for key in sorted(values.keys() & types.keys()):
        with mistakes.noted():
            typed[key] = _typed(values[key], types[key], f"{name}.{key}")
    with mistakes.noted():  # the rest too, as it is
        made = kind(**typed)
    mistakes.report()
    return made


def _typed(value: Any, wanted: Any, name: str) -> Any:
    """A value of JSON as the type a field asks for: lists become tuples, 3 becomes 3.0."""
    options = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    for option in options:
        if get_origin(option) is tuple and isinstance(value, list | tuple):
            inner = get_args(option)
            kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
            if len(kinds) == len(value):
                each = f"each of {name}"
                return tuple(_typed(v, k, each) for v, k in zip(value, kinds, strict=True))
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(OverflowError):
                return float(value)
        elif isinstance(option, type) and type(value) is option:
            return value
    raise ConfigError(f"{name} must be {' or '.join(map(_in_words, options))}, not {value!r}")


def _in_words(kind: Any) -> str:
    """What a type asks for, for those who write no Python."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        n = "" if inner[-1] is Ellipsis else f" of {len(inner)}"
        return f"a list{n}, each {_in_words(inner[0])}"
    words = {float: "a number", int: "a whole number", str: "text", bool: "true or false"}
    return words.get(kind, "nothing")


def check_rules(name: str, rules: list[tuple[bool, str, str]], config: Any) -> None:
    """Raise one error that names every broken rule, as what must be what."""
    broken = [
        f"{name}.{key} must be {wanted}, not {getattr(config, key, 'as given')}"
        for holds, key, wanted in rules
        if not holds
    ]
    if broken:
        raise ConfigError("; ".join(broken))
