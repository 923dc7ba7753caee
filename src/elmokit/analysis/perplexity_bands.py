"""Perplexity by a word's position in its sentence and by its frequency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.texts import n_bytes, read_sentences, up_to
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.inference.scoring import Score
from elmokit.io.figures import COLOURS, MARKERS
from elmokit.io.progress import DelayedProgress
from elmokit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

POSITIONS = (1, 2, 3, 5, 10, 20, 40)
"""The last position of each band but the last band, which has no end."""
RANKS = (100, 1_000, 10_000, 100_000)
"""The last rank of each band; words beyond are in a band of their own where there are any."""

_AT_ONCE = 32  # sentences: the softmax takes long, and progress should be seen


@dataclass
class Bands:
    """Losses of a text's tokens, summed by band.

    A band's perplexity is exp of its mean loss. Tokens alone are in bands; that a sentence ends
    (forward) or begins (backward) is predicted too, and kept beside them.
    """

    names: list[str]
    counts: Floats
    """Tokens (K,) of each band."""
    losses: Floats
    """-log p (2, K) of each direction; NaN for the backward one of a forward model."""

    @classmethod
    def empty(cls, names: Sequence[str]) -> Bands:
        """Nothing so far."""
        return cls(list(names), np.zeros(len(names)), np.zeros((2, len(names))))

    def add(self, bands: npt.NDArray[np.int64], losses: Floats) -> None:
        """Count tokens: the band (T,) of each, and its losses (2, T)."""
        self.counts += np.bincount(bands, minlength=len(self.names))
        for total, some in zip(self.losses, losses, strict=True):
            total += np.bincount(bands, some, len(self.names))

    def perplexities(self) -> Floats:
        """(3, K): forward, backward, and of the mean loss; NaN where there is no token."""
        both = self.losses / np.where(self.counts == 0, np.nan, self.counts)
        mean = both[0] if np.isnan(both[1]).all() else both.mean(0)
        with np.errstate(over="ignore"):  # infinite where a model has diverged
            return np.exp(np.stack([*both, mean]))


@dataclass
class BandedPerplexity:
    """A text's losses by position, by frequency, and all together."""

    positions: Bands
    ranks: Bands
    whole: Bands
    """Two bands: tokens, and sentence marks."""


def perplexity_of_text(
    elmo: Elmo, paths: Sequence[Path], max_tokens: int | None = None, tokenized: bool = False
) -> BandedPerplexity:
    """Score text files or folders as :func:`banded_perplexity` does.

    Args:
        elmo: A model with a softmax.
        paths: The files.
        max_tokens: Most tokens, the last sentence being cut to that; None for the whole text.
        tokenized: Whether each line is one sentence, its tokens apart by white space.
    """
    if max_tokens is None:
        with DelayedProgress("scoring", n_bytes(paths), "bytes") as bar:
            return banded_perplexity(elmo, read_sentences(elmo, paths, tokenized, bar.advance))
    if max_tokens < 1:
        raise InputError(f"--max-tokens must be 1 or more, not {max_tokens}")
    with DelayedProgress("scoring", max_tokens, "tokens") as bar:
        sentences = up_to(read_sentences(elmo, paths, tokenized), max_tokens)
        return banded_perplexity(elmo, sentences, bar.advance)


def banded_perplexity(
    elmo: Elmo, sentences: Iterable[list[str]], advance: Callable[[int], None] = lambda _: None
) -> BandedPerplexity:
    """Score a text, each sentence alone, and sum losses by band.

    Ranks are places in the model's vocabulary, which begins with the most frequent words.

    Args:
        elmo: A model with a softmax.
        sentences: Tokens of each sentence.
        advance: Told now and then how many more tokens were scored.
    """
    elmo.score([])  # a model without a softmax is told before the text is read
    rank = _rank_bands(elmo.vocabulary or Vocabulary(Vocabulary.marks))
    found = BandedPerplexity(
        Bands.empty(_ranges(POSITIONS, last=True)),
        Bands.empty(rank.names),
        Bands.empty(["tokens", "sentence marks"]),
    )
    remaining = iter(sentences)
    while some := list(islice(remaining, _AT_ONCE)):
        for score in elmo.score(some):
            _add(found, score, rank)
        advance(sum(map(len, some)))
    if not found.whole.counts[0]:
        raise InputError("there is no word in the text; give files with sentences")
    return found


def bands_report(found: BandedPerplexity) -> Report:
    """A row a band, with the number of its tokens."""
    groups = {"position": found.positions, "frequency rank": found.ranks, "all": found.whole}
    rows: list[list[Value]] = []
    for group, bands in groups.items():
        for k, name in enumerate(bands.names):
            perplexities = [float(p) for p in bands.perplexities()[:, k]]
            rows.append([group, name, int(bands.counts[k]), *perplexities])
    both = Bands(
        [""], found.whole.counts.sum(keepdims=True), found.whole.losses.sum(1, keepdims=True)
    )
    forward, backward, mean = (float(p[0]) for p in both.perplexities())
    rows.append(["all", "together", int(both.counts[0]), forward, backward, mean])

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        _draw_bands(left, found.positions, "position in the sentence")
        _draw_bands(right, found.ranks, "rank of the word's frequency")
        left.set_ylabel("perplexity")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)

    columns = ["by", "band", "tokens", "forward", "backward", "mean"]
    return Report("Perplexity by band", columns, rows, {}, draw, (6.8, 3.0), digits=1)


@dataclass(frozen=True)
class _RankBands:
    """Which band a word is in."""

    vocabulary: Vocabulary
    names: list[str]
    of_id: npt.NDArray[np.int64]
    """Band (V,) of every row of the vocabulary; <UNK> and the marks are unknown words."""

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
    backward = np.full(n, np.nan) if score.backward is None else score.backward
    losses = -np.stack([score.forward, backward]).astype(np.float64)
    found.positions.add(np.searchsorted(POSITIONS, np.arange(1, n + 1)), losses)
    found.ranks.add(rank(score.tokens), losses)
    found.whole.add(np.zeros(n, np.int64), losses)
    found.whole.add(np.array([1]), -np.array([[score.end], [score.start]]))


def _ranges(ends: Sequence[int], last: bool) -> list[str]:
    """Names of the bands that end at some numbers: 1, 2, 3–5, and where asked for, 6+."""
    starts = [1, *(end + 1 for end in ends)]
    names = [
        _thousands(b) if a == b else f"{_thousands(a)}–{_thousands(b)}"
        for a, b in zip(starts, ends, strict=False)
    ]
    return [*names, f"{_thousands(starts[-1])}+"] if last else names


def _thousands(n: int) -> str:
    """1,001 to 10,000 is written 1k–10k."""
    return str(n) if n < 1000 else f"{n // 1000}k"


def _draw_bands(axes: Any, bands: Bands, title: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    places = np.arange(len(bands.names))
    joined = len(places) - ("unknown" in bands.names)  # which is no band beside the one before it
    for k, name in enumerate(("forward", "backward")):
        values = bands.perplexities()[k]
        shown = np.where(np.isfinite(values), values, np.nan)
        if np.isnan(shown).all():
            continue
        beside = places + 0.12 * (k - 0.5)  # so that equal ones are both seen
        axes.plot(beside, shown, MARKERS[k], color=COLOURS[k], markersize=4, label=name)
        axes.plot(beside[:joined], shown[:joined], color=COLOURS[k], linewidth=1)
    labels = [f"{name} ({int(n):,})" for name, n in zip(bands.names, bands.counts, strict=True)]
    slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, labels, **slanted)
    axes.set_xlim(-0.5, len(places) - 0.5)  # where there is one token, all bands have their room
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.set_xlabel(f"{title} (tokens)")
