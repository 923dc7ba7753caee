"""A word's occurrences in many sentences: how far its senses lie apart, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.phrases import require_phrase
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.lines import read_lines

Floats = npt.NDArray[np.floating[Any]]

BANKS = Path(__file__).parent / "examples" / "banks.tsv"
"""A dozen sentences with a bank of money, and a dozen with one of a river."""

_SAME = 1e-10  # a cosine distance below this is rounding
_MOST = 5000  # occurrences, as all their distances are held at once


@dataclass(frozen=True)
class Example:
    """One sentence with the word."""

    sense: str
    """Empty where the file has none."""
    sentence: str
    place: str
    """Where it stands, for errors."""


@dataclass(frozen=True)
class Occurrences:
    """Where a word was found, and its vectors there."""

    examples: list[Example]
    """The sentence (N) of each occurrence; one that has the word twice is there twice."""
    positions: list[int]
    """Number (N) of the occurrence's first token."""
    vectors: Floats
    """(L + 1, N, D), the token layer first."""

    @property
    def senses(self) -> list[str]:
        """Sense (N) of each occurrence."""
        return [example.sense for example in self.examples]


def read_examples(path: Path) -> list[Example]:
    """Lines ``sense TAB sentence``, or sentences alone; empty lines are passed over."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; give lines of a sense, a tab and a sentence")
    found = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        sense, _, sentence = line.rpartition("\t")
        if "\t" in sense:
            raise InputError(
                f"{path}, line {number}: there are {line.count(chr(9))} tabs; a line is a sense, "
                "one tab and a sentence, or a sentence alone"
            )
        found.append(Example(sense.strip(), sentence, f"{path}, line {number}"))
    if not found:
        raise InputError(f"{path} is empty; give lines of a sense, a tab and a sentence")
    return found


def find_occurrences(elmo: Elmo, examples: Sequence[Example], word: str) -> Occurrences:
    """A word's vector in every example; a phrase has the mean of its tokens' vectors.

    Args:
        elmo: The model.
        examples: Sentences that have the word.
        word: The word; upper and lower case count as the same.
    """
    phrase = elmo.tokenize(word)
    sentences = [elmo.tokenize(example.sentence) for example in examples]
    places: list[tuple[int, int]] = []
    for i, (example, tokens) in enumerate(zip(examples, sentences, strict=True)):
        try:
            places += [(i, position) for position in require_phrase(tokens, phrase)]
        except InputError as error:
            raise InputError(f"{example.place}: {error}") from None
    if len(places) > _MOST:
        raise InputError(f"{word!r} occurs {len(places):,} times; {_MOST:,} is the most")
    encoded = elmo.encode(sentences, layers="all")
    vectors = [encoded[i][:, start : start + len(phrase)].mean(1) for i, start in places]
    return Occurrences(
        [examples[i] for i, _ in places], [start for _, start in places], np.stack(vectors, 1)
    )


def project(vectors: Floats) -> tuple[Floats, Floats]:
    """Points (N, 2) on the first two principal components, and the share (2,) of variance of each.

    A component's sign is free; here its largest weight is positive, so that the same vectors are
    the same picture. Vectors that coincide are all at (0, 0).
    """
    centred = vectors - vectors.mean(0)
    points, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    if coincide(vectors):
        return points, shares
    _, sizes, components = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    for k, component in enumerate(components[:2]):
        sign = np.sign(component[np.abs(component).argmax()])
        points[:, k] = centred @ component * sign
        shares[k] = sizes[k] ** 2 / (sizes**2).sum()
    return points, shares


def coincide(vectors: Floats) -> bool:
    """Whether vectors (N, D) are one and the same, but for rounding."""
    largest = float(np.abs(vectors).max(initial=0))
    return bool(np.abs(vectors - vectors[:1]).max(initial=0) <= 1e-5 * largest)


def silhouette(vectors: Floats, senses: Sequence[str]) -> float:
    """Mean silhouette (Rousseeuw 1987) of vectors (N, D) by cosine distance, from -1 to 1.

    For each, a is the mean distance to the others of its sense, and b that to the nearest other
    sense; its silhouette is (b - a) / max(a, b), and 0 where it is alone in its sense or both are
    0. NaN where there is one sense.
    """
    names = sorted(set(senses))
    if len(names) < 2:
        return float("nan")
    units = unit(vectors.astype(np.float64))
    distances = 1 - units @ units.T
    distances[distances < _SAME] = 0
    np.fill_diagonal(distances, 0)
    members = np.array([[sense == name for sense in senses] for name in names], float)  # (S, N)
    sums, sizes = distances @ members.T, members.sum(1)
    own = members.T.astype(bool)
    n_own = (own * sizes).sum(1)
    a = sums[own] / np.maximum(n_own - 1, 1)
    b = np.where(own, np.inf, sums / sizes).min(1)
    larger = np.maximum(a, b)
    scores = np.where((n_own > 1) & (larger > 0), (b - a) / np.where(larger > 0, larger, 1), 0)
    return float(scores.mean())
