"""The language model's side: probabilities of words in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.errors import InputError
from elmokit.inference.engine import BatchResult, Engine
from elmokit.inference.states import StartState
from elmokit.nn.softmax import Softmax
from elmokit.text.vocabulary import Vocabulary

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Score:
    """Natural log-probabilities of one sentence's tokens, as each direction sees them."""

    tokens: list[str]
    forward: Floats
    """log p(token | all before it) (T,)."""
    backward: Floats | None
    """log p(token | all after it) (T,); None for a forward model."""
    end: float
    """log p(sentence end | the sentence), of the forward direction."""
    start: float
    """log p(sentence start | the sentence), of the backward direction; NaN for a forward model."""
    known: npt.NDArray[np.bool_]
    """False (T,) where the vocabulary lacks the token, and <UNK> was scored instead."""


@dataclass(frozen=True)
class Perplexity:
    """Full-softmax perplexity of a text."""

    forward: float
    backward: float
    """NaN for a forward model."""
    mean: float
    """exp of the mean loss of the directions, as ELMo's papers give it."""
    n_predictions: int
    """Tokens predicted by each direction, one sentence mark a sentence included."""
    unknown_rate: float
    """Share of tokens the vocabulary lacks; the more, the lower the perplexity seems."""


class LanguageModel:
    """A biLM's engine with its softmax and vocabulary."""

    def __init__(self, engine: Engine, softmax: Softmax, vocabulary: Vocabulary) -> None:
        self.engine, self.softmax, self.vocabulary = engine, softmax, vocabulary

    def score(
        self,
        sentences: Sequence[Sequence[str]],
        start: StartState = None,
        batch_size: int | None = None,
    ) -> list[Score]:
        """Log-probabilities of every token, a sentence at a time, order kept."""

        @torch.inference_mode()
        def score_batch(batch: BatchResult) -> list[tuple[int, Score]]:
            top = batch.layers[-1]
            return [
                (i, self._score_sentence(list(sentences[i]), top[row]))
                for row, i in enumerate(batch.indices)
            ]

        parts = self.engine.run(sentences, score_batch, start=start, batch_size=batch_size)
        found = dict(pair for part in parts for pair in part)
        return [found[i] for i in range(len(sentences))]

    def substitutes(
        self, tokens: Sequence[str], position: int, k: int, start: StartState = None
    ) -> list[tuple[str, float]]:
        """The k likeliest words for one position, each with its probability.

        p(w | left, right) ∝ p(w | left) · p(w | right) / p(w), which is Bayes' rule where the two
        sides are independent given the word. Without the division the frequency of words would
        count twice, and quotation marks would fit everywhere.
        """
        if not 0 <= position < len(tokens):
            raise InputError(
                f"position {position} is not a token of a sentence of {len(tokens)} tokens; give "
                f"0 to {len(tokens) - 1}"
            )
        if k < 1:
            raise InputError(f"k must be 1 or more, not {k}")

        @torch.inference_mode()
        def log_probabilities(batch: BatchResult) -> Tensor:
            # neither direction has read the token itself where its prediction is made
            forward, backward = self._halves(batch.layers[-1][0])
            total = self.softmax(forward[position : position + 1])[0]
            if backward is not None:
                total = total + self.softmax(backward[position + 2 : position + 3])[0]
            words = torch.ones(len(total), dtype=torch.bool, device=total.device)
            words[self.vocabulary.ids(Vocabulary.marks)] = False
            if backward is not None:
                total[words] -= zipf(total[words] / 2)
            total[~words] = -torch.inf
            return torch.log_softmax(total, 0)

        (scores,) = self.engine.run([tokens], log_probabilities, start=start)
        best = scores.topk(min(k, len(scores) - 3))
        return [
            (self.vocabulary.words[int(i)], math.exp(p))
            for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]

    def _halves(self, top: Tensor) -> tuple[Tensor, Tensor | None]:
        width = self.softmax.input_dim
        return top[:, :width], top[:, width:] if top.shape[1] > width else None

    def _score_sentence(self, tokens: list[str], top: Tensor) -> Score:
        n = len(tokens)
        marked = [Vocabulary.begin, *tokens, Vocabulary.end]
        targets = torch.from_numpy(self.vocabulary.ids(marked)).to(top.device)
        forward, backward = self._halves(top)
        ahead = self.softmax.score(forward[: n + 1], targets[1:]).float().cpu().numpy()
        behind = None
        if backward is not None:
            behind = self.softmax.score(backward[1 : n + 2], targets[:-1]).float().cpu().numpy()
        return Score(
            tokens,
            ahead[:-1],
            None if behind is None else behind[1:],
            float(ahead[-1]),
            math.nan if behind is None else float(behind[0]),
            np.array([token in self.vocabulary for token in tokens], bool),
        )


def zipf(predicted: Tensor) -> Tensor:
    """How frequent words are by themselves: log p (V,) up to a constant, by Zipf's law.

    Models keep no counts, but their vocabularies begin with the most frequent words, and
    p(w) ∝ rank ** -s. The exponent s is how steeply the model's own predictions fall with the
    rank, 1 at most: about 1 for a sorted vocabulary, about 0 for one in another order, where ranks
    mean nothing and p(w) is better left alone.

    Args:
        predicted: The model's log-probabilities (V,) somewhere, in the order of the vocabulary.
    """
    ranks = torch.arange(1, len(predicted) + 1).to(predicted).log()
    from_mean = ranks - ranks.mean()
    slope = -(from_mean @ predicted) / from_mean.square().sum().clamp(min=1e-9)
    return -slope.clamp(0, 1) * ranks


def perplexity(scores: Sequence[Score]) -> Perplexity:
    """Perplexity over all given sentences together."""
    if not scores:
        raise InputError("perplexity needs one sentence or more")
    n_tokens = sum(len(score.tokens) for score in scores)
    n = n_tokens + len(scores)
    forward = -sum(float(s.forward.sum(dtype=np.float64)) + s.end for s in scores) / n
    backward = math.nan
    if scores[0].backward is not None:
        backward = (
            -sum(
                float(s.backward.sum(dtype=np.float64)) + s.start
                for s in scores
                if s.backward is not None
            )
            / n
        )
    mean = forward if math.isnan(backward) else (forward + backward) / 2
    unknown = sum(int((~score.known).sum()) for score in scores)
    with np.errstate(over="ignore"):  # infinite where a model has diverged
        forward, backward, mean = np.exp([forward, backward, mean]).tolist()
    return Perplexity(forward, backward, mean, n, unknown / max(1, n_tokens))
