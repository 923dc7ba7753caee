"""Perplexity: the one place that turns summed losses into the numbers people compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.arguments import each, instance
from elmokit.errors import InputError
from elmokit.inference.scoring import Score
from elmokit.io.html_table import facts, html_table
from elmokit.io.notebook import Displayed, Shown

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Perplexity(Displayed):
    """Full-softmax perplexity of a text, and the counts behind it."""

    forward: float
    backward: float | None
    """None for a forward-only model."""
    mean: float
    """exp of the mean loss of both directions, as reported in the ELMo papers."""
    n_predictions: int
    """Predictions per direction: every token, and one sentence mark per sentence."""
    n_tokens: int
    n_sentences: int
    unknown_rate: float
    """Fraction of tokens outside the vocabulary. A high rate makes the perplexity look better."""
    bits_per_character: float
    """Mean of both directions; counts the tokens' characters and one space after each token."""

    @classmethod
    def from_losses(
        cls,
        losses: Sequence[float],
        *,
        n_tokens: int,
        n_sentences: int,
        n_unknown: int,
        n_characters: int,
    ) -> Perplexity:
        """Compute the perplexity from losses summed over a text.

        Args:
            losses: Summed losses in nats: forward, then backward if the model has that direction.
            n_tokens: Tokens of the text.
            n_sentences: Sentences of the text.
            n_unknown: Tokens scored as <UNK>.
            n_characters: Characters of all tokens, plus one per token.
        """
        n_predictions = n_tokens + n_sentences
        by_direction = mean_perplexities(np.array(losses, np.float64), np.float64(n_predictions))
        forward, *backward, mean = by_direction.tolist()
        bits = math.fsum(losses) / len(losses) / math.log(2)
        return cls(
            forward=forward,
            backward=backward[0] if backward else None,
            mean=mean,
            n_predictions=n_predictions,
            n_tokens=n_tokens,
            n_sentences=n_sentences,
            unknown_rate=n_unknown / n_tokens if n_tokens else 0.0,
            bits_per_character=bits / n_characters if n_characters else math.nan,
        )

    @classmethod
    def from_scores(cls, scores: Iterable[Score]) -> Perplexity:
        """Compute the perplexity of all scored sentences together, in one pass."""
        forward = backward = 0.0
        n_tokens = n_sentences = n_unknown = n_characters = 0
        bidirectional = True
        for score in each(scores, "scores", "a list of scores"):
            instance(score, "each of scores", Score, "a Score")
            forward -= float(score.forward.sum(dtype=np.float64)) + score.end
            if score.backward is None:
                bidirectional = False
            else:
                backward -= float(score.backward.sum(dtype=np.float64)) + score.start
            n_tokens += len(score.tokens)
            n_sentences += 1
            n_unknown += int((~score.known).sum())
            n_characters += sum(len(token) + 1 for token in score.tokens)
        if not n_sentences:
            raise InputError("perplexity needs at least one sentence")
        return cls.from_losses(
            [forward, backward] if bidirectional else [forward],
            n_tokens=n_tokens,
            n_sentences=n_sentences,
            n_unknown=n_unknown,
            n_characters=n_characters,
        )

    def _shown(self) -> Shown:
        values = {
            "forward": f"{self.forward:,.2f}",
            "backward": "–" if self.backward is None else f"{self.backward:,.2f}",
            "mean": f"{self.mean:,.2f}",
            "bits per character": f"{self.bits_per_character:.3f}",
            "tokens outside the vocabulary": f"{self.unknown_rate:.2%}",
            "tokens": self.n_tokens,
            "sentences": self.n_sentences,
        }
        return Shown(html_table(facts("Perplexity", values)))

    def values(self) -> dict[str, Any]:
        """All fields as plain values by name, without those that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def mean_perplexities(losses: Floats, counts: Floats | np.float64) -> Floats:
    """Perplexity of each direction, then of their mean loss.

    Args:
        losses: Summed losses (n_directions, …) in nats.
        counts: Predictions per direction (…).

    Returns:
        (n_directions + 1, …): NaN where nothing was predicted, infinite where exp overflows.
    """
    nats = losses / np.where(counts == 0, np.nan, counts)
    with np.errstate(over="ignore"):  # a diverged model
        return np.exp(np.concatenate([nats, nats.mean(0, keepdims=True)]))
