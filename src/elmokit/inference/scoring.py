"""Probabilities of words in a sentence, by the language model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.inference.engine import BatchResult, Engine
from elmokit.inference.states import StartState
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import BriefRepr, Displayed, Shown
from elmokit.nn.softmax import Softmax
from elmokit.text.vocabulary import Vocabulary

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, repr=False)
class Score(BriefRepr, Displayed):
    """Natural log-probabilities of the tokens of one sentence, by direction."""

    tokens: list[str]
    forward: Floats
    """log p(token | all tokens before it) (T,)."""
    backward: Floats | None
    """log p(token | all tokens after it) (T,); None for a forward-only model."""
    end: float
    """log p(end of sentence | the sentence), forward."""
    start: float
    """log p(start of sentence | the sentence), backward; NaN for a forward-only model."""
    known: npt.NDArray[np.bool_]
    """False (T,) for tokens scored as <UNK>: those outside the vocabulary, and <UNK> itself."""

    def _shown(self) -> Shown:
        directions = {"forward": (*self.forward.tolist(), self.end, "")}
        if self.backward is not None:
            directions["backward"] = (*self.backward.tolist(), "", self.start)
        named = [*self.tokens, "(end of sentence)", "(start of sentence)"]
        scored = ["" if known else Vocabulary.unknown for known in self.known]
        columns = [*directions.values(), (*scored, "", "")]
        rows = [
            [name, *(f"{value:.2f}" if isinstance(value, float) else value for value in values)]
            for name, *values in zip(named, *columns, strict=True)
        ]
        rows = rows if self.backward is not None else rows[:-1]
        title = "Natural log-probabilities"
        return Shown(html_table(Table(rows, ["token", *directions, "scored as"], title)))


class Substitutes(list[tuple[str, float]], Displayed):
    """Words that fit a position, with their probabilities; the best first.

    Args:
        words: Words and probabilities.
        tokens: The sentence.
        position: The position.
    """

    def __init__(
        self, words: Iterable[tuple[str, float]], tokens: Sequence[str], position: int
    ) -> None:
        super().__init__(words)
        self.tokens, self.position = list(tokens), position

    def _shown(self) -> Shown:
        before, after = self.tokens[: self.position], self.tokens[self.position + 1 :]
        title = " ".join([*before, f"[{self.tokens[self.position]}]", *after])
        rows = [[word, f"{probability:.3f}"] for word, probability in self]
        return Shown(html_table(Table(rows, ["word", "probability"], title)))


class LanguageModel:
    """An engine with its softmax and vocabulary."""

    def __init__(self, engine: Engine, softmax: Softmax, vocabulary: Vocabulary) -> None:
        self.engine, self.softmax, self.vocabulary = engine, softmax, vocabulary

    def score(
        self,
        sentences: Sequence[Sequence[str]],
        start: StartState = None,
        batch_size: int | None = None,
    ) -> list[Score]:
        """Score every token. Sentences are scored independently and returned in order."""

        @torch.inference_mode()
        def score_batch(batch: BatchResult) -> list[tuple[int, Score]]:
            tokens = [list(sentences[i]) for i in batch.indices]
            scores = self._score_batch(tokens, batch.layers[-1])
            return list(zip(batch.indices, scores, strict=True))

        parts = self.engine.run(sentences, score_batch, start=start, batch_size=batch_size)
        found = dict(pair for part in parts for pair in part)
        return [found[i] for i in range(len(sentences))]

    def substitutes(
        self, tokens: Sequence[str], position: int, k: int, start: StartState = None
    ) -> Substitutes:
        """The k most probable words for one position, with their probabilities.

        p(w | left, right) ∝ p(w | left) · p(w | right) / p(w), which is Bayes' rule if the two
        sides are independent given the word. Without the division, word frequency would count
        twice, and frequent tokens such as quotation marks would rank high everywhere.
        """

        @torch.inference_mode()
        def log_probabilities(batch: BatchResult) -> Tensor:
            # each direction predicts the token before it reads it
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
        return Substitutes(self._best(scores, k), tokens, position)

    def expected(
        self, tokens: Sequence[str], position: int, k: int, start: StartState = None
    ) -> list[Substitutes]:
        """The k words that each direction expects most at one position: forward, then backward.

        The forward direction has read the tokens before the position, the backward direction those
        after it. Sentence marks and <UNK> are left out; the probabilities of the rest sum to 1.
        """

        @torch.inference_mode()
        def log_probabilities(batch: BatchResult) -> list[Tensor]:
            forward, backward = self._halves(batch.layers[-1][0])
            found = [self.softmax(forward[position : position + 1])[0]]
            if backward is not None:
                found.append(self.softmax(backward[position + 2 : position + 3])[0])
            for scores in found:
                scores[self.vocabulary.ids(Vocabulary.marks)] = -torch.inf
            return [torch.log_softmax(scores, 0) for scores in found]

        (directions,) = self.engine.run([tokens], log_probabilities, start=start)
        return [Substitutes(self._best(scores, k), tokens, position) for scores in directions]

    def _best(self, scores: Tensor, k: int) -> Iterator[tuple[str, float]]:
        """The k words with the highest log-probabilities (V,), and their probabilities."""
        best = scores.topk(min(k, len(scores) - len(Vocabulary.marks)))
        for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            yield self.vocabulary.words[int(i)], math.exp(p)

    def _halves(self, top: Tensor) -> tuple[Tensor, Tensor | None]:
        """The forward half (…, P) of a layer (…, D), and the backward half or None."""
        width = self.softmax.input_dim
        return top[..., :width], top[..., width:] if top.shape[-1] > width else None

    def _score_batch(self, sentences: list[list[str]], top: Tensor) -> list[Score]:
        """Score a batch from its top layer (B, T, D), with one softmax call per direction."""
        lengths = np.array([len(tokens) for tokens in sentences])
        marked = [[Vocabulary.begin, *tokens, Vocabulary.end] for tokens in sentences]
        ids = [self.vocabulary.ids(tokens) for tokens in marked]
        # a sentence of n tokens has n + 1 predictions per direction; the rest is padding
        real = torch.from_numpy(np.arange(top.shape[1] - 1) <= lengths[:, None]).to(top.device)
        ends = np.cumsum(lengths + 1)[:-1]

        def score(half: Tensor, targets: list[npt.NDArray[np.int64]]) -> list[Floats]:
            flat = torch.from_numpy(np.concatenate(targets)).to(top.device)
            scores = self.softmax.score(half[real], flat).float().cpu().numpy()
            return np.split(scores, ends)

        forward, backward = self._halves(top)
        ahead = score(forward[:, :-1], [row[1:] for row in ids])
        behind: list[Floats] | None = None
        if backward is not None:
            behind = score(backward[:, 1:], [row[:-1] for row in ids])
        unknown = self.vocabulary.id(Vocabulary.unknown)
        return [
            Score(
                tokens,
                ahead[i][:-1],
                None if behind is None else behind[i][1:],
                float(ahead[i][-1]),
                math.nan if behind is None else float(behind[i][0]),
                ids[i][1:-1] != unknown,
            )
            for i, tokens in enumerate(sentences)
        ]


def zipf(predicted: Tensor) -> Tensor:
    """Estimate word frequencies by Zipf's law: log p (V,), up to a constant.

    Models store no counts, but their vocabularies usually start with the most frequent words, so
    p(w) ∝ rank ** -s. The exponent s, at most 1, is how steeply the model's own predictions fall
    with the rank. It is about 1 for a vocabulary sorted by frequency. For any other order it is
    about 0, which leaves p(w) uniform, because such ranks carry no information.

    Args:
        predicted: The model's log-probabilities (V,) at some position, in vocabulary order.
    """
    ranks = torch.arange(1, len(predicted) + 1).to(predicted).log()
    from_mean = ranks - ranks.mean()
    slope = -(from_mean @ predicted) / from_mean.square().sum().clamp(min=1e-9)
    return -slope.clamp(0, 1) * ranks
