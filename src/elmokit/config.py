"""Sizes and settings of a model, as small frozen dataclasses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from elmokit.arguments import LARGEST_NUMBER
from elmokit.errors import ConfigError, shortened, shown
from elmokit.settings import Mistakes, build, check_rules, check_types

N_BYTE_CHARACTERS = 261
"""256 byte values, then sentence start and end, word start and end, and padding."""

PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
"""(width, count) of each convolution in every model that AllenNLP published."""

# Limits far beyond every trained model. Products of two widths stay within 64 bits, and a damaged
# or malicious config is refused before anything is built.
_WIDTH = 1 << 20
_ROWS = 100_000_000  # of an embedding or a softmax
_DEPTH = 1000
_CHARACTERS = 10_000  # of a word


_FROM_1 = "1 or more, up to {:,}"


def _is_moderate(value: float) -> bool:
    """Whether float32 can compute with a number; not if it is NaN."""
    return abs(value) <= LARGEST_NUMBER


@dataclass(frozen=True)
class TokenEncoderConfig:
    """The character CNN that turns one word into one vector."""

    filters: tuple[tuple[int, int], ...] = PUBLISHED_FILTERS
    """(width in characters, number of filters) of each convolution, in order."""
    n_highway: int = 1
    """Number of highway layers after the convolutions."""
    character_dim: int = 16
    """Width of a character embedding."""
    n_characters: int = N_BYTE_CHARACTERS
    """Number of distinct characters, not counting the row of zeros for padded tokens. In a recipe
    with alphabet=codepoints, the most: the marks and the most frequent characters of the text."""
    max_characters: int = 50
    """Most characters of a word, including its two markers; longer words are truncated."""
    activation: Literal["relu", "tanh"] = "relu"
    """Applied after max pooling over positions."""
    alphabet: Literal["utf8", "codepoints"] = "utf8"
    """utf8: bytes, as in AllenNLP and bilm-tf. codepoints: Unicode characters from a list, as in
    ELMoForManyLangs."""
    word_dim: int = 0
    """Width of a word embedding prepended to the CNN's features; 0 for none."""
    n_words: int = 0
    """Number of words with an embedding of their own; 0 unless word_dim is set."""

    def __post_init__(self) -> None:
        check_types("token_encoder", self)
        check_rules(
            "token_encoder",
            [
                (bool(self.filters) or self.word_dim > 0, "filters", "one or more filters"),
                (all(w > 0 and n > 0 for w, n in self.filters), "filters", "positive numbers"),
                (
                    len(self.filters) <= _DEPTH and self.n_filters <= _WIDTH,
                    "filters",
                    f"at most {_DEPTH:,} convolutions with {_WIDTH:,} filters in total",
                ),
                (0 <= self.n_highway <= _DEPTH, "n_highway", f"0 or more, up to {_DEPTH:,}"),
                (1 <= self.character_dim <= _WIDTH, "character_dim", _FROM_1.format(_WIDTH)),
                (1 <= self.n_characters <= _ROWS, "n_characters", _FROM_1.format(_ROWS)),
                (
                    self.alphabet != "utf8" or self.n_characters == N_BYTE_CHARACTERS,
                    "n_characters",
                    f"{N_BYTE_CHARACTERS} with alphabet=utf8",
                ),
                (
                    max(3, self.widest) <= self.max_characters <= _CHARACTERS,
                    "max_characters",
                    f"at least 3, at least the widest filter ({shortened(str(self.widest))}) and "
                    f"at most {_CHARACTERS:,}",
                ),
                (0 <= self.word_dim <= _WIDTH, "word_dim", f"0 or more, up to {_WIDTH:,}"),
                (
                    (self.n_words > 0) == (self.word_dim > 0) and 0 <= self.n_words <= _ROWS,
                    "n_words",
                    f"above 0 if and only if word_dim is, up to {_ROWS:,}",
                ),
            ],
            self,
        )

    @property
    def n_filters(self) -> int:
        """Width F of the CNN's output."""
        return sum(count for _, count in self.filters)

    @property
    def widest(self) -> int:
        """Width of the widest filter, in characters."""
        return max((width for width, _ in self.filters), default=0)


@dataclass(frozen=True)
class ContextConfig:
    """The forward and backward layers that read the sentence."""

    kind: Literal["lstm", "transformer"] = "lstm"
    """lstm: as in ELMo. transformer: causal self-attention in each direction."""
    n_layers: int = 2
    """Context layers of each direction. The token layer below them is not counted here, as in
    published options.json files; :attr:`ModelConfig.n_layers` counts it."""
    cell_dim: int = 4096
    """Width H of the memory cell, or of the feed-forward layers of a transformer."""
    projection_dim: int = 512
    """Width P of token vectors and of each direction's output."""
    cell_clip: float | None = 3.0
    """Clip memory cells to ± this value; None disables clipping."""
    proj_clip: float | None = 3.0
    """Clip projected outputs to ± this value; None disables clipping."""
    skip_connections: bool = True
    """Whether every layer after the first adds its input to its output."""
    forget_bias: float = 1.0
    """Added to the forget gate at run time, on top of the stored bias."""
    bidirectional: bool = True
    """False for a forward-only language model."""
    n_heads: int = 8
    """Number of attention heads of a transformer."""

    def __post_init__(self) -> None:
        check_types("context", self)
        clips = [c for c in (self.cell_clip, self.proj_clip) if c is not None]
        attends = self.kind == "transformer"
        check_rules(
            "context",
            [
                (1 <= self.n_layers <= _DEPTH, "n_layers", _FROM_1.format(_DEPTH)),
                (1 <= self.cell_dim <= _WIDTH, "cell_dim", _FROM_1.format(_WIDTH)),
                (1 <= self.projection_dim <= _WIDTH, "projection_dim", _FROM_1.format(_WIDTH)),
                (1 <= self.n_heads <= _WIDTH, "n_heads", _FROM_1.format(_WIDTH)),
                (
                    not attends or self.projection_dim % (2 * max(1, self.n_heads)) == 0,
                    "projection_dim",
                    f"a multiple of {shortened(str(2 * self.n_heads))}, twice the number of heads",
                ),
                (
                    all(0 < c <= LARGEST_NUMBER for c in clips),
                    "cell_clip and proj_clip",
                    f"above 0 and up to {LARGEST_NUMBER}, or null",
                ),
                (_is_moderate(self.forget_bias), "forget_bias", f"within ±{LARGEST_NUMBER}"),
            ],
            self,
        )

    @property
    def label(self) -> str:
        """What these layers are called in reports: LSTM or transformer."""
        return "LSTM" if self.kind == "lstm" else "transformer"

    @property
    def inner_label(self) -> str:
        """What ``cell_dim`` measures, for reports: cells or feed-forward."""
        return "cells" if self.kind == "lstm" else "feed-forward"

    @property
    def carries_state(self) -> bool:
        """Whether a state can be carried from one sentence to the next."""
        return self.kind == "lstm"

    @property
    def adds_input(self) -> bool:
        """Whether the top layer's output is the sum of its input and what it computed itself."""
        return self.kind == "lstm" and self.skip_connections and self.n_layers > 1

    @property
    def quantizable(self) -> bool:
        """Whether the weights can be quantized to int8 or bfloat16."""
        return self.kind == "lstm"

    @property
    def trainable(self) -> bool:
        """Whether the layers can be pretrained; LSTMs need a projection for that."""
        return self.kind != "lstm" or self.has_projection

    @property
    def has_projection(self) -> bool:
        """Whether the cell output is projected; published files omit the projection if H == P."""
        return self.cell_dim != self.projection_dim

    @property
    def n_directions(self) -> int:
        """2, or 1 for a forward-only model."""
        return 2 if self.bidirectional else 1

    @property
    def output_dim(self) -> int:
        """Width D of every layer."""
        return self.projection_dim * self.n_directions


@dataclass(frozen=True)
class MixConfig:
    """The layer weights used for ``layers="mix"``."""

    weights: tuple[float, ...] | None = None
    """One number per layer, before the softmax; None for equal weights."""
    gamma: float = 1.0
    """Scale of the mix."""

    def __post_init__(self) -> None:
        check_types("mix", self)
        check_rules(
            "mix",
            [
                (
                    all(map(_is_moderate, self.weights or ())),
                    "weights",
                    f"within ±{LARGEST_NUMBER}",
                ),
                (_is_moderate(self.gamma), "gamma", f"within ±{LARGEST_NUMBER}"),
            ],
            self,
        )


@dataclass(frozen=True)
class ModelConfig:
    """Everything about a model except its weights."""

    token_encoder: TokenEncoderConfig = field(default_factory=TokenEncoderConfig)
    context: ContextConfig = field(default_factory=ContextConfig)
    tokenizer: str = "whitespace"
    """How to split raw strings into tokens: a name from elmokit.text.tokenizers."""
    script: Literal["any", "simplified"] = "any"
    """simplified: traditional Chinese characters are read and predicted as simplified ones."""
    vocabulary_size: int = 0
    """Vocabulary size of the softmax; 0 for a model without one."""
    softmax_cutoffs: tuple[int, ...] = ()
    """First row of each cluster of an adaptive softmax; empty for a full softmax."""
    mix: MixConfig = field(default_factory=MixConfig)

    def __post_init__(self) -> None:
        check_types("model", self)
        n_weights, n_layers = len(self.mix.weights or ()), self.n_layers
        check_rules(
            "model",
            [
                (
                    0 <= self.vocabulary_size <= _ROWS,
                    "vocabulary_size",
                    f"0 or more, up to {_ROWS:,}",
                ),
                (n_weights in (0, n_layers), "mix", f"{n_layers} weights, one per layer"),
                (
                    list(self.softmax_cutoffs) == sorted(set(self.softmax_cutoffs))
                    and all(0 < c < self.vocabulary_size - 1 for c in self.softmax_cutoffs)
                    and len(self.softmax_cutoffs) <= _DEPTH,
                    "softmax_cutoffs",
                    f"at most {_DEPTH:,}, increasing, and below vocabulary_size - 1",
                ),
            ],
            self,
        )

    @property
    def n_layers(self) -> int:
        """All layers of the model: the token layer and the context layers above it.

        ``context.n_layers``, the name in config.json, counts the context layers only.
        """
        return 1 + self.context.n_layers

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """The inverse of :meth:`to_dict`; a ConfigError lists all wrong names and types."""
        if not isinstance(values, dict):
            raise ConfigError(f"config must be an object, not {shown(values)}")
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
    """Return a size that AllenNLP published: small, medium or original (and the 5.5B model's)."""
    if name not in tuple(_SIZES):  # a tuple, because a value from a recipe may be unhashable
        raise ConfigError(f"unknown size {shown(name)}; choose one of {', '.join(_SIZES)}")
    cell_dim, projection_dim, n_highway = _SIZES[name]
    return ModelConfig(
        token_encoder=TokenEncoderConfig(n_highway=n_highway),
        context=ContextConfig(cell_dim=cell_dim, projection_dim=projection_dim),
    )
