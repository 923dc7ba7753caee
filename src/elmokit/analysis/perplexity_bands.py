"""Perplexity by a token's position in its sentence and by its frequency rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Reported
from elmokit.analysis.text_perplexity import score_files
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.inference.perplexity import mean_perplexities
from elmokit.inference.scoring import Score
from elmokit.io.notebook import BriefRepr
from elmokit.text.vocabulary import Vocabulary

Floats = npt.NDArray[np.float64]

POSITIONS = (1, 2, 3, 5, 10, 20, 40)
"""Last position of each band; one more, open-ended band follows."""
RANKS = (100, 1_000, 10_000, 100_000)
"""Last rank of each band; a larger vocabulary adds one more, open-ended band."""


@dataclass(repr=False)
class Bands(BriefRepr):
    """Losses of a text's tokens, summed by band."""

    names: list[str]
    counts: Floats
    """Tokens (K,) of each band."""
    losses: Floats
    """-log p (n_directions, K): forward, then backward if the model has that direction."""

    @classmethod
    def empty(cls, names: Sequence[str], n_directions: int) -> Bands:
        """Create bands without tokens."""
        return cls(list(names), np.zeros(len(names)), np.zeros((n_directions, len(names))))

    def add(self, bands: npt.NDArray[np.int64], losses: Floats) -> None:
        """Add tokens: the band (T,) of each, and its losses (n_directions, T)."""
        self.counts += np.bincount(bands, minlength=len(self.names))
        for total, some in zip(self.losses, losses, strict=True):
            total += np.bincount(bands, some, len(self.names))

    def perplexities(self) -> Floats:
        """(n_directions + 1, K): each direction, then the mean; NaN for a band without tokens."""
        return mean_perplexities(self.losses, self.counts)

    def together(self) -> Bands:
        """All bands as one."""
        return Bands(["all"], self.counts.sum(keepdims=True), self.losses.sum(1, keepdims=True))


@dataclass(repr=False)
class BandedPerplexity(BriefRepr, Reported):
    """Losses of a text by position, by frequency rank, and in total."""

    positions: Bands
    ranks: Bands
    whole: Bands
    """Two bands: all tokens, and the sentence marks, which belong to no other band."""

    def report(self) -> Report:
        """Return a row for each band, and a line for each direction."""
        from elmokit.analysis.reports.perplexity_bands_report import bands_report

        return bands_report(self)


def perplexity_of_text(
    elmo: Elmo, paths: Sequence[Path], max_tokens: int | None = None, tokenized: bool = False
) -> BandedPerplexity:
    """Score text files or folders and sum the losses by band.

    Args:
        elmo: A model with a softmax.
        paths: Text files and folders.
        max_tokens: Score at most this many tokens; the last sentence is cut. None scores all.
        tokenized: Whether each line is one sentence with tokens separated by white space.
    """
    scores = score_files(elmo, paths, tokenized=tokenized, max_tokens=max_tokens)
    return _sum_by_band(elmo, scores)


def banded_perplexity(elmo: Elmo, sentences: Iterable[list[str]]) -> BandedPerplexity:
    """Score sentences, each alone, and sum the losses by band.

    A word's rank is its row in the model's vocabulary, which starts with the most frequent words.

    Args:
        elmo: A model with a softmax.
        sentences: Tokens of each sentence.
    """
    return _sum_by_band(elmo, elmo.stream_scores(sentences))


def _sum_by_band(elmo: Elmo, scores: Iterable[Score]) -> BandedPerplexity:
    rank = _rank_bands(elmo.vocabulary or Vocabulary(Vocabulary.marks))
    n_directions = elmo.config.context.n_directions
    found = BandedPerplexity(
        Bands.empty(_ranges(POSITIONS, last=True), n_directions),
        Bands.empty(rank.names, n_directions),
        Bands.empty(["tokens", "sentence marks"], n_directions),
    )
    for score in scores:
        _add(found, score, rank)
    if not found.whole.counts[0]:
        raise InputError("the text has no tokens; expected at least one")
    return found


@dataclass(frozen=True)
class _RankBands:
    """The frequency band of every word."""

    vocabulary: Vocabulary
    names: list[str]
    of_id: npt.NDArray[np.int64]
    """Band (V,) of every row of the vocabulary; <UNK> and the sentence marks are unknown words."""

    def __call__(self, tokens: Sequence[str]) -> npt.NDArray[np.int64]:
        return self.of_id[self.vocabulary.ids(tokens)]


def _rank_bands(vocabulary: Vocabulary) -> _RankBands:
    beyond = len(vocabulary) - len(Vocabulary.marks) > RANKS[-1]
    names = [*_ranges(RANKS, last=beyond), "unknown"]
    is_word = np.ones(len(vocabulary), bool)
    is_word[vocabulary.ids(Vocabulary.marks)] = False
    bands = np.searchsorted(RANKS, np.cumsum(is_word))
    return _RankBands(vocabulary, names, np.where(is_word, bands, len(names) - 1))


def _add(found: BandedPerplexity, score: Score, rank: _RankBands) -> None:
    n = len(score.tokens)
    directions, marks = [score.forward], [score.end]
    if score.backward is not None:
        directions.append(score.backward)
        marks.append(score.start)
    losses = -np.stack(directions).astype(np.float64)
    found.positions.add(np.searchsorted(POSITIONS, np.arange(1, n + 1)), losses)
    found.ranks.add(rank(score.tokens), losses)
    found.whole.add(np.zeros(n, np.int64), losses)
    found.whole.add(np.array([1]), -np.array(marks)[:, None])


def _ranges(ends: Sequence[int], last: bool) -> list[str]:
    """Names of the bands that end at some numbers, such as 1, 2, 3–5, and 6+ if ``last``."""
    starts = [1, *(end + 1 for end in ends)]
    names = [
        _thousands(b) if a == b else f"{_thousands(a)}–{_thousands(b)}"
        for a, b in zip(starts, ends, strict=False)
    ]
    return [*names, f"{_thousands(starts[-1])}+"] if last else names


def _thousands(n: int) -> str:
    """Shorten thousands: the band from 1,001 to 10,000 is called 1k–10k."""
    return str(n) if n < 1000 else f"{n // 1000}k"
