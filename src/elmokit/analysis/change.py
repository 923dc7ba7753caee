"""How far words mean something else in one text than in another, by their vectors in both.

Two measures (after Kutuzov and Giulianelli 2020). PRT is the cosine distance of a word's mean
vectors, its prototypes, in the two texts. APD is the average cosine distance of all pairs of
occurrences, one from each text; it is large for words of many meanings, too, changed or not, so
that words are sorted by PRT.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.geometry import Vectors
from elmokit.analysis.report import Report, Value
from elmokit.analysis.similarity import cosine, unit
from elmokit.analysis.texts import Reservoir, read_paragraphs, sentences_of
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.inference.layers import LayerChoice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROUNDS = 1000
"""How often occurrences are drawn anew for an interval."""
LEAST = 5
"""How many occurrences in either text a word must have."""

_SHOWN = 40  # words in a picture


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
    chance: float | None = None
    """What the PRT is below in 95 of 100 cases where occurrences are dealt out by chance."""
    apd: Estimate | None = None


@dataclass(frozen=True)
class Occurrence:
    """A sentence and where in it a phrase begins."""

    tokens: list[str]
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
    phrases = {word: elmo.tokenize(word) for word in dict.fromkeys(words)}
    if not phrases or not all(phrases.values()):
        raise InputError("a word to look for is empty; give words apart by commas, as plot,star")
    sides = [find_occurrences(elmo, path, phrases, most, tokenized, rng) for path in (old, new)]
    found = []
    for word, phrase in phrases.items():
        ours, theirs = (side[word] for side in sides)
        if min(ours.seen, theirs.seen) < LEAST:
            found.append(WordChange(word, ours.seen, theirs.seen))
            continue
        a, b = (_vectors(elmo, side.items, len(phrase), layer) for side in (ours, theirs))
        draw = np.random.default_rng(seed)
        prt_rounds, apd_rounds = bootstrap(a, b, draw)
        found.append(
            WordChange(
                word,
                ours.seen,
                theirs.seen,
                interval(prt(a, b), prt_rounds),
                by_chance(a, b, draw),
                interval(apd(a, b), apd_rounds),
            )
        )
    return sorted(found, key=lambda c: (c.prt is None, -(c.prt.value if c.prt else 0.0)))


def prt(a: Vectors, b: Vectors) -> float:
    """Cosine distance of the means of vectors (N, D) and (M, D)."""
    return 1 - float(cosine(a.mean(0), b.mean(0)))


def apd(a: Vectors, b: Vectors) -> float:
    """Mean cosine distance of all pairs of vectors (N, D) and (M, D)."""
    return 1 - float(unit(a).mean(0) @ unit(b).mean(0))


def bootstrap(
    a: Vectors, b: Vectors, rng: np.random.Generator, rounds: int = ROUNDS
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """PRT and APD (rounds,) of occurrences drawn anew, with replacement, from each side."""
    (weights_a, weights_b) = (
        rng.multinomial(len(x), np.full(len(x), 1 / len(x)), rounds) / len(x) for x in (a, b)
    )
    prts = 1 - cosine(weights_a @ a, weights_b @ b)
    apds = 1 - ((weights_a @ unit(a)) * (weights_b @ unit(b))).sum(1)
    return np.asarray(prts, np.float64), np.asarray(apds, np.float64)


def interval(value: float, rounds: npt.NDArray[np.float64]) -> Estimate:
    """The middle 95% of the rounds, moved so that their mean is the value.

    Drawing anew adds noise to means, which moves every PRT up; the noise is not part of the
    uncertainty.
    """
    low, high = np.quantile(rounds - rounds.mean() + value, [0.025, 0.975])
    return Estimate(value, max(0.0, float(low)), min(2.0, float(high)))


def by_chance(a: Vectors, b: Vectors, rng: np.random.Generator, rounds: int = ROUNDS) -> float:
    """The PRT that is reached in 5 of 100 cases where occurrences are dealt to the sides by chance.

    A PRT below it says nothing: means of few occurrences differ anyway.
    """
    both = np.concatenate([a, b])
    order = rng.permuted(np.tile(np.arange(len(both)), (rounds, 1)), axis=1)
    first = (order < len(a)).astype(both.dtype)
    prts = 1 - cosine(first @ both / len(a), (1 - first) @ both / len(b))
    return float(np.quantile(prts, 0.95))


def find_occurrences(
    elmo: Elmo,
    path: Path,
    phrases: dict[str, list[str]],
    most: int,
    tokenized: bool,
    rng: random.Random,
) -> dict[str, Reservoir[Occurrence]]:
    """Occurrences of phrases in a text, a random sample of each where there are many."""
    wanted = {word: [token.casefold() for token in phrase] for word, phrase in phrases.items()}
    found: dict[str, Reservoir[Occurrence]] = {word: Reservoir(most, rng) for word in phrases}
    empty = True
    for paragraph in read_paragraphs(path):
        empty = False
        folded = paragraph.casefold()
        # most paragraphs have none of the words, and need not be split
        if not any(phrase[0] in folded for phrase in wanted.values()):
            continue
        for tokens in sentences_of(elmo, paragraph, tokenized):
            same = [token.casefold() for token in tokens]
            for word, phrase in wanted.items():
                n = len(phrase)
                for start in range(len(same) - n + 1):
                    if same[start] == phrase[0] and same[start : start + n] == phrase:
                        found[word].add(Occurrence(tokens, start))
    if empty:
        raise InputError(f"there is no word in {path}; give a text")
    return found


def change_report(
    changes: Sequence[WordChange],
    names: tuple[str, str] = ("old", "new"),
    about: dict[str, Any] | None = None,
) -> Report:
    """A table of words, and a picture of those that are not too rare.

    Args:
        changes: The words in their order.
        names: What the texts are called.
        about: What else to say of the numbers.
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
            **(about or {}),
            "least_occurrences": LEAST,
            "too_rare": rare,
            "rounds": ROUNDS,
            "interval": 0.95,
        },
        draw if shown else None,
        size=(3.4, 1.0 + 0.2 * len(shown)),
    )


def _values(estimate: Estimate | None) -> list[Value]:
    return [None] * 3 if estimate is None else [estimate.value, estimate.low, estimate.high]


def _draw(figure: Figure, changes: Sequence[WordChange]) -> None:
    from elmokit.analysis.figures import COLOURS

    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(changes))
    _dots(left, [c.prt for c in changes if c.prt], COLOURS[0], "o")
    _dots(right, [c.apd for c in changes if c.apd], COLOURS[1], "s")
    left.scatter(
        [c.chance for c in changes], places, marker="|", color=COLOURS[6], label="PRT by chance"
    )
    left.set_xlabel("PRT, 95% interval")
    right.set_xlabel("APD, 95% interval")
    left.set_yticks(places, [c.word for c in changes])
    left.invert_yaxis()
    left.set_xlim(left=0)
    figure.legend(loc="outside upper right")


def _dots(axes: Axes, estimates: Sequence[Estimate], colour: str, marker: str) -> None:
    """Values with their intervals, from the top down."""
    values = np.array([e.value for e in estimates])
    reach = np.array([[max(0.0, e.value - e.low), max(0.0, e.high - e.value)] for e in estimates])
    axes.errorbar(
        values, np.arange(len(values)), xerr=reach.T, fmt=marker, color=colour, ms=4, capsize=2
    )


def _vectors(
    elmo: Elmo, occurrences: Sequence[Occurrence], n_tokens: int, layer: str | int
) -> Vectors:
    """Vectors (N, D) of occurrences, the mean over the tokens of each."""
    # a long sentence may have many occurrences, and is read once
    sentences = {id(o.tokens): o.tokens for o in occurrences}
    encoded = dict(zip(sentences, elmo.encode(list(sentences.values()), layer), strict=True))
    return np.stack(
        [encoded[id(o.tokens)][o.start : o.start + n_tokens].mean(0) for o in occurrences]
    )
