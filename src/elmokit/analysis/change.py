"""How far words mean something else in one text than in another, by their vectors in both.

Two measures (after Kutuzov and Giulianelli 2020). PRT is the cosine distance of a word's mean
vectors, its prototypes, in the two texts. APD is the average cosine distance of all pairs of
occurrences, one from each text; it is large for words of many meanings, too, changed or not, so
that words are sorted by PRT.

Means of few occurrences are noisy, and noise turns two vectors away from each other, so that a PRT
computed plainly is too large, the more so the rarer the word. The one given here is corrected for
that; the plain one is kept beside it, to be compared with what others published.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elmokit.analysis.geometry import Vectors
from elmokit.analysis.phrases import find_phrase
from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.similarity import cosine, unit
from elmokit.analysis.texts import Reservoir, read_paragraphs, sentences_of, windows
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.inference.layers import LayerChoice
from elmokit.io.figures import short
from elmokit.io.progress import DelayedProgress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROUNDS = 1000
"""How often occurrences are drawn anew for an interval."""
LEAST = 5
"""How many occurrences in either text a word must have."""

Floats = npt.NDArray[np.float64]

_SHOWN = 40  # words in a picture
_AT_ONCE = 5_000  # tokens embedded together


@dataclass(frozen=True)
class Estimate:
    """A measure and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class WordChange:
    """How a word differs between two texts; no measures where it is too rare in one."""

    word: str
    n_old: int
    """How often it is in the old text…"""
    n_new: int
    """…and in the new one, all told."""
    prt: Estimate | None = None
    """Corrected for the noise of the means."""
    plain_prt: float | None = None
    """Not corrected."""
    chance: float | None = None
    """What the PRT is below in 95 of 100 cases where occurrences are dealt out by chance."""
    apd: Estimate | None = None


@dataclass(frozen=True)
class Place:
    """A sentence and where in it a phrase begins."""

    tokens: tuple[str, ...]
    start: int


def change(
    elmo: Elmo,
    old: Path,
    new: Path,
    words: Sequence[str],
    *,
    layer: str | int = "top",
    most: int = 500,
    tokenized: bool = False,
    seed: int = 0,
) -> list[WordChange]:
    """Compare words between two texts, the most changed first, words too rare last.

    Args:
        elmo: The model.
        old: A text file or a folder of them.
        new: Another.
        words: Words or phrases; upper and lower case count as the same.
        layer: top, average, mix or the number of a layer. The top layer tells a word's senses apart
            best (table 5 of the paper), and is the usual choice.
        most: Occurrences of a word used in each text, drawn by chance where there are more.
        tokenized: Whether lines are sentences, their tokens apart by white space.
        seed: The same seed, the same numbers.
    """
    if LayerChoice.parse(layer, elmo.n_layers).stacked:
        raise InputError(f"layer must be top, average, mix or one number, not {layer!r}")
    rng = random.Random(seed)
    phrases = {
        word: word.split() if tokenized else elmo.tokenize(word) for word in dict.fromkeys(words)
    }
    if not phrases or not all(phrases.values()):
        raise InputError("a word to look for is empty; give words apart by commas, as plot,star")
    sides = [sample_places(elmo, path, phrases, most, tokenized, rng) for path in (old, new)]
    found = {w: WordChange(w, sides[0][w].seen, sides[1][w].seen) for w in phrases}
    common = [word for word, one in found.items() if min(one.n_old, one.n_new) >= LEAST]
    # a list for each word and side
    places = [side[word].items for word in common for side in sides]
    lengths = [len(phrases[word]) for word in common for _ in sides]
    vectors = iter(_vectors(elmo, places, lengths, layer))
    with DelayedProgress("comparing", len(common), "words") as bar:
        for word in common:
            found[word] = _compare(found[word], next(vectors), next(vectors), seed)
            bar.advance(1)
    return sorted(found.values(), key=lambda c: (c.prt is None, -(c.prt.value if c.prt else 0.0)))


def _compare(word: WordChange, a: Vectors, b: Vectors, seed: int) -> WordChange:
    """The measures of a word by its vectors (N, D) in one text and (M, D) in the other."""
    rng = np.random.default_rng(seed)
    prt_rounds, apd_rounds = bootstrap(a, b, rng)
    return replace(
        word,
        prt=interval(prt(a, b), prt_rounds),
        plain_prt=plain_prt(a, b),
        chance=by_chance(a, b, rng),
        apd=interval(apd(a, b), apd_rounds),
    )


def plain_prt(a: Vectors, b: Vectors) -> float:
    """Cosine distance of the means of vectors (N, D) and (M, D)."""
    return 1 - float(cosine(a.mean(0), b.mean(0)))


def prt(a: Vectors, b: Vectors) -> float:
    """The same of the means that more and more occurrences would give; below 0 by chance only."""
    weights = (np.full((1, len(x)), 1 / len(x)) for x in (a, b))
    sides = (_means(x, some, len(x)) for x, some in zip((a, b), weights, strict=True))
    return float(_prts(*sides)[0])


@dataclass(frozen=True)
class _Means:
    """R means of occurrences, and how long they would be without their noise."""

    vectors: Floats
    """(R, D)."""
    squares: Floats
    """Squared lengths (R,)."""


def _means(x: Vectors, weights: Floats, n: int) -> _Means:
    """Means of n of the vectors (N, D), by weights (R, N) whose sums are 1.

    The square of a mean is too large by the variance of the mean; without that, it is the average
    product of two different occurrences.
    """
    exact = x.astype(np.float64)
    means = weights @ exact
    squares = (means**2).sum(1)
    variances = weights @ (exact**2).sum(1) - squares
    return _Means(means, np.maximum(squares - variances / max(1, n - 1), 0))


def _prts(a: _Means, b: _Means) -> Floats:
    """PRT (R,); noise is independent on both sides, so that products need no correction."""
    lengths = np.sqrt(a.squares * b.squares)
    cosines = (a.vectors * b.vectors).sum(1) / np.where(lengths == 0, np.inf, lengths)
    return 1 - np.maximum(cosines, -1)


def apd(a: Vectors, b: Vectors) -> float:
    """Mean cosine distance of all pairs of vectors (N, D) and (M, D)."""
    return 1 - float(unit(a).mean(0) @ unit(b).mean(0))


def bootstrap(
    a: Vectors, b: Vectors, rng: np.random.Generator, rounds: int = ROUNDS
) -> tuple[Floats, Floats]:
    """PRT and APD (rounds,) of occurrences drawn anew, with replacement, from each side."""
    (weights_a, weights_b) = (
        rng.multinomial(len(x), np.full(len(x), 1 / len(x)), rounds) / len(x) for x in (a, b)
    )
    apds = 1 - ((weights_a @ unit(a)) * (weights_b @ unit(b))).sum(1)
    prts = _prts(_means(a, weights_a, len(a)), _means(b, weights_b, len(b)))
    return prts, np.asarray(apds, np.float64)


def interval(value: float, rounds: Floats) -> Estimate:
    """The middle 95% of the rounds, moved so that their mean is the value.

    The rounds vary about the PRT of the noisy means they draw from, which is larger than the value.
    With those means they vary a little more than the value itself does, so that the interval of a
    PRT is rather too wide than too narrow. What no distance can be is cut off.
    """
    value = max(value, 0)  # below, by the correction of a mean that is nearly all noise
    low, high = np.quantile(rounds - rounds.mean() + value, [0.025, 0.975])
    return Estimate(*(float(np.clip(x, 0, 2)) for x in (value, low, high)))


def by_chance(a: Vectors, b: Vectors, rng: np.random.Generator, rounds: int = ROUNDS) -> float:
    """The PRT that is reached in 5 of 100 cases where occurrences are dealt to the sides by chance.

    A PRT below it says nothing: means of few occurrences differ anyway. Compared are plain PRTs, as
    the correction has no hold where the mean of both sides together is near zero; the bound is then
    moved as the PRT itself is, so that one is above the other where it was before.
    """
    both = np.concatenate([a, b])
    order = rng.permuted(np.tile(np.arange(len(both)), (rounds, 1)), axis=1)
    first = (order < len(a)).astype(both.dtype)
    prts = 1 - cosine(first @ both / len(a), (1 - first) @ both / len(b))
    return max(0.0, float(np.quantile(prts, 0.95)) - plain_prt(a, b) + prt(a, b))


def sample_places(
    elmo: Elmo,
    path: Path,
    phrases: dict[str, list[str]],
    most: int,
    tokenized: bool,
    rng: random.Random,
) -> dict[str, Reservoir[Place]]:
    """Where phrases stand in a text, a random sample of each where there are many."""
    begins = {word: phrase[0].casefold() for word, phrase in phrases.items()}
    found: dict[str, Reservoir[Place]] = {word: Reservoir(most, rng) for word in phrases}
    empty = True
    for paragraph in read_paragraphs(path):
        empty = False
        folded = paragraph.casefold()
        # most paragraphs have none of the words, and need not be split
        likely = [word for word, begin in begins.items() if begin in folded]
        for tokens in map(tuple, sentences_of(elmo, paragraph, tokenized) if likely else ()):
            for word in likely:
                for start in find_phrase(tokens, phrases[word]):
                    found[word].add(Place(tokens, start))
    if empty:
        raise InputError(f"there is no word in {path}; give a text")
    return found


def change_report(changes: Sequence[WordChange], names: tuple[str, str] = ("old", "new")) -> Report:
    """A table of words, and a picture of those that are not too rare.

    Args:
        changes: The words in their order.
        names: What the texts are called.
    """
    rows: list[list[Value]] = [
        [c.word, c.n_old, c.n_new, *_values(c.prt), c.chance, *_values(c.apd)] for c in changes
    ]
    shown = [c for c in changes if c.prt][:_SHOWN]
    rare = [c.word for c in changes if not c.prt]
    title = f"Change of meaning from {names[0]} to {names[1]}"
    if rare:
        title += f"; fewer than {LEAST} times in one of them: {', '.join(rare)}"

    def draw(figure: Figure) -> None:
        _draw(figure, shown)

    return Report(
        title,
        [
            *("word", "n old", "n new"),
            *("PRT", "PRT low", "PRT high", "PRT chance"),
            *("APD", "APD low", "APD high"),
        ],
        rows,
        {
            "least_occurrences": LEAST,
            "too_rare": rare,
            "uncorrected_prt": {c.word: c.plain_prt for c in changes if c.prt},
            "rounds": ROUNDS,
            "interval": 0.95,
        },
        draw if shown else None,
        size=(3.4, 1.1 + 0.2 * len(shown)),
    )


def _values(estimate: Estimate | None) -> list[Value]:
    return [None] * 3 if estimate is None else [estimate.value, estimate.low, estimate.high]


def _draw(figure: Figure, changes: Sequence[WordChange]) -> None:
    from elmokit.io.figures import COLOURS

    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(changes))
    _dots(left, [c.prt for c in changes if c.prt], COLOURS[0], "o")
    _dots(right, [c.apd for c in changes if c.apd], COLOURS[1], "s")
    left.scatter(
        [c.chance for c in changes], places, marker="|", color=COLOURS[6], label="PRT by chance"
    )
    left.set_xlabel("PRT, 95% interval")
    right.set_xlabel("APD, 95% interval")
    left.set_yticks(places, [short(c.word, 24) for c in changes])
    left.set_ylim(len(changes) - 0.5, -0.5)
    left.set_xlim(left=-0.03 * left.get_xlim()[1])  # 0, and room for the half of a dot at it
    # above the panel that has the mark
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)


def _dots(axes: Axes, estimates: Sequence[Estimate], colour: str, marker: str) -> None:
    """Values with their intervals, from the top down."""
    values = np.array([e.value for e in estimates])
    reach = np.array([[max(0.0, e.value - e.low), max(0.0, e.high - e.value)] for e in estimates])
    axes.errorbar(
        values, np.arange(len(values)), xerr=reach.T, fmt=marker, color=colour, ms=4, capsize=2
    )


def _vectors(
    elmo: Elmo, places: Sequence[Sequence[Place]], lengths: Sequence[int], layer: str | int
) -> list[Vectors]:
    """Vectors (N, D) of several lists of places, the mean over the tokens of each.

    A sentence is embedded once, however many places are in it.

    Args:
        elmo: The model.
        places: Lists of places…
        lengths: …and how many tokens each of a list has.
        layer: Which layer.
    """
    found = [np.empty((len(some), elmo.dim), np.float32) for some in places]
    wanted: dict[tuple[str, ...], list[tuple[int, int, int]]] = defaultdict(list)
    for k, some in enumerate(places):
        for row, place in enumerate(some):
            wanted[place.tokens].append((k, row, place.start))
    with DelayedProgress("embedding", len(wanted), "sentences") as bar:
        for window in windows(wanted, _AT_ONCE):
            arrays = elmo.encode(window, layer, progress=False)
            for tokens, array in zip(window, arrays, strict=True):
                for k, row, start in wanted[tokens]:
                    found[k][row] = array[start : start + lengths[k]].mean(0)
            bar.advance(len(window))
    return found
