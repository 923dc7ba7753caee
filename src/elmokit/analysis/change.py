"""Semantic change of words between two texts, measured by their contextual vectors.

Two measures (Kutuzov and Giulianelli 2020). PRT is the cosine distance between a word's mean
vectors (prototypes) in the two texts. APD is the average cosine distance over all pairs of
occurrences, one from each text. APD is also large for words with many meanings, changed or not, so
words are sorted by PRT.

The mean of a few occurrences is noisy. Noise moves two means apart, so a plain PRT is too large,
and more so for rare words. The PRT given here is corrected for that. The plain PRT is kept beside
it, for comparison with published numbers.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.analysis.geometry import Vectors
from elmokit.analysis.phrases import Place, find_phrase
from elmokit.analysis.reports.report import Report, Reported
from elmokit.analysis.similarity import cosine, unit
from elmokit.analysis.texts import Reservoir, read_paragraphs, sentences_of
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.inference.layers import LayerChoice
from elmokit.io.progress import DelayedProgress
from elmokit.text.scripts import UNSPACED

ROUNDS = 1000
"""Bootstrap resamples behind an interval, and permutations behind the chance level."""
LEAST = 5
"""Occurrences a word needs in each text."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A measure with its 95% confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class WordChange:
    """How a word differs between two texts; without measures if it is too rare in one."""

    word: str
    n_old: int
    """Occurrences in the old text, whether sampled or not."""
    n_new: int
    """Occurrences in the new text, whether sampled or not."""
    prt: Estimate | None = None
    """Corrected for the noise of the means."""
    plain_prt: float | None = None
    """Not corrected."""
    chance: float | None = None
    """95th percentile of the PRT if occurrences are assigned to the two texts at random."""
    apd: Estimate | None = None
    longer: tuple[str, ...] = ()
    """Tokens that contain the word and are used in its place; see :func:`sample_occurrences`."""


class Changes(list[WordChange], Reported):
    """The changes of some words.

    Args:
        changes: The words in order.
        names: Names of the two texts.
    """

    def __init__(
        self, changes: Iterable[WordChange], names: tuple[str, str] = ("old", "new")
    ) -> None:
        super().__init__(changes)
        self.names = names

    def report(self) -> Report:
        """Return a row for each word, and dots with their intervals."""
        from elmokit.analysis.reports.change_report import change_report

        return change_report(self, self.names)


@dataclass(frozen=True)
class Occurrence:
    """A sentence, and the place of a phrase in it."""

    tokens: tuple[str, ...]
    place: Place


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
) -> Changes:
    """Compare words between two texts; the most changed come first, words too rare come last.

    Args:
        elmo: The model.
        old: A text file or a folder of text files.
        new: Another text file or folder.
        words: Words or phrases, regardless of case.
        layer: "top", "average", "mix" or the number of a layer. The top layer separates word
            senses best (table 5 of the paper).
        most: Occurrences of a word used per text; more are sampled down to this.
        tokenized: Whether each line is one sentence with tokens separated by white space.
        seed: Seed of the sample, the bootstrap and the permutations.
    """
    try:
        stacked = LayerChoice.parse(layer, elmo.n_layers).stacked
    except InputError:
        stacked = True
    if stacked:
        raise InputError(
            f"layer must be top, average, mix or a number from 0 to {elmo.n_layers - 1}, not "
            f"{layer!r}"
        )
    rng = random.Random(seed)
    phrases = {
        word: word.split() if tokenized else elmo.tokenize(word) for word in dict.fromkeys(words)
    }
    if not phrases or not all(phrases.values()):
        raise InputError("words= contains an empty word; expected words such as plot,star")
    sides = [sample_occurrences(elmo, path, phrases, most, tokenized, rng) for path in (old, new)]
    found = {}
    for word in phrases:
        old_side, new_side = sides[0][word], sides[1][word]
        longer = [one.place.longer for one in old_side.items + new_side.items if one.place.longer]
        found[word] = WordChange(word, old_side.seen, new_side.seen, longer=tuple(longer))
    common = [word for word, one in found.items() if min(one.n_old, one.n_new) >= LEAST]
    # one list per word and side
    vectors = iter(_vectors(elmo, [side[word].items for word in common for side in sides], layer))
    with DelayedProgress("comparing", len(common), "words") as bar:
        for word in common:
            found[word] = _compare(found[word], next(vectors), next(vectors), seed)
            bar.advance(1)
    order = sorted(found.values(), key=lambda c: (c.prt is None, -(c.prt.value if c.prt else 0.0)))
    return Changes(order, (Path(old).name, Path(new).name))


def _compare(word: WordChange, a: Vectors, b: Vectors, seed: int) -> WordChange:
    """Measure a word by its vectors (N, D) in one text and (M, D) in the other."""
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
    """Cosine distance between the means of vectors (N, D) and (M, D)."""
    return 1 - float(cosine(a.mean(0), b.mean(0)))


def prt(a: Vectors, b: Vectors) -> float:
    """Cosine distance between the means that unlimited occurrences would give.

    An unbiased estimate; it can fall below 0 by chance.
    """
    weights = (np.full((1, len(x)), 1 / len(x)) for x in (a, b))
    sides = (_means(x, some, len(x)) for x, some in zip((a, b), weights, strict=True))
    return float(_prts(*sides)[0])


@dataclass(frozen=True)
class _Means:
    """R means of occurrences, and their lengths without noise."""

    vectors: Floats
    """(R, D)."""
    squares: Floats
    """Squared lengths (R,)."""


def _means(x: Vectors, weights: Floats, n: int) -> _Means:
    """Means of n of the vectors (N, D), by weights (R, N) that sum to 1.

    The squared length of a mean is too large by the variance of the mean. What is left after
    subtracting that is the average product of two different occurrences.
    """
    exact = x.astype(np.float64)
    means = weights @ exact
    squares = (means**2).sum(1)
    variances = weights @ (exact**2).sum(1) - squares
    return _Means(means, np.maximum(squares - variances / max(1, n - 1), 0))


def _prts(a: _Means, b: _Means) -> Floats:
    """PRT (R,). Noise is independent on both sides, so the products need no correction."""
    lengths = np.sqrt(a.squares * b.squares)
    cosines = (a.vectors * b.vectors).sum(1) / np.where(lengths == 0, np.inf, lengths)
    return 1 - np.maximum(cosines, -1)


def apd(a: Vectors, b: Vectors) -> float:
    """Mean cosine distance over all pairs of vectors (N, D) and (M, D)."""
    return 1 - float(unit(a).mean(0) @ unit(b).mean(0))


def bootstrap(
    a: Vectors, b: Vectors, rng: np.random.Generator, rounds: int = ROUNDS
) -> tuple[Floats, Floats]:
    """PRT and APD (rounds,) of bootstrap resamples of the occurrences on each side."""
    (weights_a, weights_b) = (
        rng.multinomial(len(x), np.full(len(x), 1 / len(x)), rounds) / len(x) for x in (a, b)
    )
    apds = 1 - ((weights_a @ unit(a)) * (weights_b @ unit(b))).sum(1)
    prts = _prts(_means(a, weights_a, len(a)), _means(b, weights_b, len(b)))
    return prts, np.asarray(apds, np.float64)


def interval(value: float, rounds: Floats) -> Estimate:
    """The middle 95% of the resamples, shifted to have their mean at the value.

    The resamples scatter around the PRT of the noisy means they are drawn from, which is larger
    than the value. They also scatter a little more than the value itself does, so the interval of
    a PRT is slightly too wide rather than too narrow. The interval is clipped to possible
    distances.
    """
    value = max(value, 0)  # the correction can push a mean that is nearly all noise below 0
    low, high = np.quantile(rounds - rounds.mean() + value, [0.025, 0.975])
    return Estimate(*(float(np.clip(x, 0, 2)) for x in (value, low, high)))


def by_chance(a: Vectors, b: Vectors, rng: np.random.Generator, rounds: int = ROUNDS) -> float:
    """95th percentile of the PRT under random assignment of occurrences to the two sides.

    A PRT below this level is no evidence of change: means of few occurrences differ anyway. The
    permutations compare plain PRTs, because the correction is unstable if the mean of both sides
    together is near zero. The level is then shifted like the PRT itself, which keeps their order.
    """
    both = np.concatenate([a, b])
    order = rng.permuted(np.tile(np.arange(len(both)), (rounds, 1)), axis=1)
    first = (order < len(a)).astype(both.dtype)
    prts = 1 - cosine(first @ both / len(a), (1 - first) @ both / len(b))
    return max(0.0, float(np.quantile(prts, 0.95)) - plain_prt(a, b) + prt(a, b))


def sample_occurrences(
    elmo: Elmo,
    path: Path,
    phrases: dict[str, list[str]],
    most: int,
    tokenized: bool,
    rng: random.Random,
) -> dict[str, Reservoir[Occurrence]]:
    """Find phrases in a text, keeping a random sample of at most ``most`` occurrences each.

    In scripts without spaces, longer tokens that contain a word count only if the word itself is
    too rare: 人 is also a part of hundreds of other words.
    """
    # of a word that may be cut otherwise in the text, only the first character is certain
    begins = {
        word: phrase[0][: 1 if UNSPACED.search(word) else None].casefold()
        for word, phrase in phrases.items()
    }
    found: dict[str, Reservoir[Occurrence]] = {word: Reservoir(most, rng) for word in phrases}
    within: dict[str, Reservoir[Occurrence]] = {word: Reservoir(most, rng) for word in phrases}
    empty = True
    for paragraph in read_paragraphs(path):
        empty = False
        folded = paragraph.casefold()
        # most paragraphs contain none of the words and need no splitting
        likely = [word for word, begin in begins.items() if begin in folded]
        for tokens in map(tuple, sentences_of(elmo, paragraph, tokenized) if likely else ()):
            for word in likely:
                for place in find_phrase(tokens, phrases[word]):
                    (within if place.longer else found)[word].add(Occurrence(tokens, place))
    if empty:
        raise InputError(f"no tokens found in {path}; expected text")
    for word, own in found.items():
        if own.seen < LEAST:
            for occurrence in own.items:
                within[word].add(occurrence)
            found[word] = within[word]
    return found


def _vectors(
    elmo: Elmo, occurrences: Sequence[Sequence[Occurrence]], layer: str | int
) -> list[Vectors]:
    """Vectors (N, D) of several lists of occurrences, each the mean over the phrase's tokens.

    Every sentence is embedded once, however many occurrences it contains.

    Args:
        elmo: The model.
        occurrences: Lists of occurrences.
        layer: The layer.
    """
    found = [np.empty((len(some), elmo.dim), np.float32) for some in occurrences]
    wanted: dict[tuple[str, ...], list[tuple[int, int, Place]]] = defaultdict(list)
    for k, some in enumerate(occurrences):
        for row, one in enumerate(some):
            wanted[one.tokens].append((k, row, one.place))
    with DelayedProgress("embedding", len(wanted), "sentences") as bar:
        for rows, array in zip(wanted.values(), elmo.stream(list(wanted), layer), strict=True):
            for k, row, place in rows:
                found[k][row] = array[place.tokens].mean(0)
            bar.advance(1)
    return found
