"""The sections of a recipe: text, batch, softmax, optimizer and training."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from elmokit.settings import MOST_SEED, check_rules
from elmokit.text.tokenizers import DEFAULT_TOKENIZER, TOKENIZERS

_RATE_OF_ONE_CELL, _ADAGRAD_RATE = 0.175, 0.2
_MOST = 1_000_000_000  # epochs or minutes


@dataclass(frozen=True)
class TextSettings:
    """How to split text into words, and which words the model predicts."""

    tokenizer: str | None = None
    """A name from elmokit.text.tokenizers. None chooses the tokenizer of the model that training
    starts from, or :data:`~elmokit.text.tokenizers.DEFAULT_TOKENIZER`. Not used for tokenised
    text, whose tokens are separated by white space."""
    tokenized: bool = False
    """Whether each line is one sentence with tokens separated by white space."""
    vocabulary_size: int = 100_000
    """Maximum size of the vocabulary, including its three marks."""
    min_count: int = 2
    """Words that occur less often are left out of the vocabulary."""
    new_vocabulary: bool = False
    """Whether to predict the vocabulary of this text when training starts from a model that has
    a vocabulary of its own."""

    def __post_init__(self) -> None:
        check_rules(
            "text",
            [
                (
                    self.tokenizer in (None, *TOKENIZERS),
                    "tokenizer",
                    f"one of {', '.join(TOKENIZERS)}",
                ),
                (
                    not self.tokenized or self.tokenizer in (None, "whitespace"),
                    "tokenizer",
                    "left out for tokenised text (text.tokenized)",
                ),
                (self.vocabulary_size > 3, "vocabulary_size", "4 or more"),
                (self.min_count >= 1, "min_count", "1 or more"),
            ],
            self,
        )

    @property
    def chosen_tokenizer(self) -> str:
        """The tokenizer to split this text with; a complete recipe leaves nothing to default."""
        return "whitespace" if self.tokenized else self.tokenizer or DEFAULT_TOKENIZER


@dataclass(frozen=True)
class BatchSettings:
    """What one training step sees."""

    order: Literal["sentences", "stream", "documents"] = "sentences"
    """sentences: each sentence starts from a fresh state. stream: shuffled sentences follow one
    another and the state is carried on, as for the published models. documents: like stream, but
    sentences of a document stay in order."""
    tokens: int = 32_768
    """Tokens per batch, summed over all processes."""
    steps: int = 20
    """Tokens per row of a stream through which gradients flow back."""
    max_length: int = 128
    """Longer sentences are cut into pieces; only for order=sentences."""

    def __post_init__(self) -> None:
        check_rules(
            "batch",
            [
                (self.tokens >= 1, "tokens", "1 or more"),
                (self.steps >= 1, "steps", "1 or more"),
                (self.max_length >= 1, "max_length", "1 or more"),
            ],
            self,
        )


@dataclass(frozen=True)
class SoftmaxSettings:
    """How words are predicted in training."""

    kind: Literal["full", "sampled", "adaptive"] = "sampled"
    """full: over the whole vocabulary. sampled: over a random sample of it, as for the published
    models. adaptive: rare words are predicted in clusters."""
    samples: int = 8192
    """Words sampled per direction and step, for kind=sampled."""
    full_from: float = 1.0
    """Fraction of the run after which a sampled softmax becomes a full one."""
    cutoffs: tuple[int, ...] = (10_000, 40_000)
    """First row of each cluster, for kind=adaptive; cutoffs above the vocabulary size are
    ignored."""
    frequencies: bool = True
    """Whether a new softmax starts with log frequencies as biases; otherwise with zeros."""

    def __post_init__(self) -> None:
        increasing = list(self.cutoffs) == sorted({c for c in self.cutoffs if c > 0})
        check_rules(
            "softmax",
            [
                (self.samples >= 1, "samples", "1 or more"),
                (0 <= self.full_from <= 1, "full_from", "from 0 to 1"),
                (bool(self.cutoffs) and increasing, "cutoffs", "increasing positive numbers"),
            ],
            self,
        )


@dataclass(frozen=True)
class OptimizerSettings:
    """How gradients change the weights."""

    name: Literal["muon", "adamw", "adagrad"] = "muon"
    """muon: Muon for all matrices except embeddings and the softmax, AdamW for the rest. adamw and
    adagrad: that optimizer for all weights."""
    learning_rate: float | None = None
    """The peak learning rate. None chooses one for the optimizer and the model's width, see
    :meth:`for_width`."""
    warmup: int = 300
    """Steps over which the learning rate rises from 0, at most a tenth of all steps; in a run of
    fewer than fifty steps at most five of them, or half. If training.minutes is set, the first
    twenty steps serve to estimate the total."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """cosine: decay to a hundredth of the peak. constant: no decay."""
    weight_decay: float = 0.01
    """Weight decay of matrices, for muon and adamw."""
    momentum: float = 0.95
    """Momentum of muon."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Betas of adamw."""
    accumulator: float = 1.0
    """Initial sum of squares of adagrad."""
    clip_norm: float = 1.0
    """Gradients with a larger norm are scaled down to this norm."""
    loss_scale: float = 1.0
    """Factor on the mean loss per token; matters for adagrad and for clipping."""

    def __post_init__(self) -> None:
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        check_rules(
            "optimizer",
            [
                (0 < rate < math.inf, "learning_rate", "above 0, and finite"),
                (self.warmup >= 0, "warmup", "0 or more"),
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
        """Fill in the learning rate for a model with this many cells, unless it is set.

        A step of Muon changes the gate matrix (4H, P) by 0.2 · √(4H) · rate in every direction (see
        muon.py). This rule makes that 0.07, with which a model of 1,920 cells trained well. At
        0.175 it learned well for 1,800 steps and then diverged. For AdamW alone the rule is close
        to the best rates for 256 and 2,048 cells.
        """
        if self.learning_rate is not None:
            return self
        rate = _ADAGRAD_RATE if self.name == "adagrad" else _RATE_OF_ONE_CELL / math.sqrt(cell_dim)
        return dataclasses.replace(self, learning_rate=rate)


@dataclass(frozen=True)
class TrainingSettings:
    """How long to train, and with which precautions."""

    epochs: float = 10.0
    """Passes over the text."""
    minutes: float | None = None
    """Training time, not counting evaluations; replaces epochs."""
    dropout: float = 0.1
    """Dropout rate of each layer's input and of the top output."""
    recased: float = 0.0
    """Fraction of sentences to read in another case, half of them in capitals and half in lower
    case. The words to predict stay as they are."""
    seed: int = 0
    """The same seed gives the same run; on a CPU, bit for bit."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """bfloat16 uses autocast. auto: bfloat16 on a GPU, float32 elsewhere."""
    evaluate_every: float = 0.1
    """Fraction of the run between evaluations on the validation text. Short runs evaluate less
    often, see :mod:`~elmokit.pretrain.objective.evaluation_plan`."""
    save_every: float = 5.0
    """Minutes between checkpoints."""

    def __post_init__(self) -> None:
        minutes = 1.0 if self.minutes is None else self.minutes
        check_rules(
            "training",
            [
                (0 < self.epochs <= _MOST, "epochs", f"above 0, at most {_MOST:,}"),
                (0 < minutes <= _MOST, "minutes", f"above 0, at most {_MOST:,}"),
                (0 <= self.dropout < 1, "dropout", "from 0 to below 1"),
                (0 <= self.recased <= 1, "recased", "from 0 to 1"),
                (0 <= self.seed <= MOST_SEED, "seed", "0 or more, and below 2^62"),
                (0 < self.evaluate_every <= 1, "evaluate_every", "above 0, at most 1"),
                (self.save_every >= 0, "save_every", "0 or more"),
            ],
            self,
        )
