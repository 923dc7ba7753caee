"""A word's occurrences in many sentences, and how well each layer separates its senses.

The silhouette and the projection are a few lines of numpy each; scikit-learn, which has both, would
be a large dependency for them. Tests compare them with worked examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.phrases import Place, check_phrase, find_phrase
from elmokit.analysis.reports.report import Report, Reported, numbered_layers
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import InputError, shown
from elmokit.io.lines import STANDARD_INPUT, read_lines
from elmokit.io.notebook import BriefRepr

Floats = npt.NDArray[np.floating[Any]]

_EXAMPLES = Path(__file__).parent / "examples"
BUNDLED = {
    "bank": _EXAMPLES / "banks.tsv",
    "苹果": _EXAMPLES / "apples.zh.tsv",
    "元素": _EXAMPLES / "elements.zh.tsv",
    "组织": _EXAMPLES / "tissues.zh.tsv",
    "单位": _EXAMPLES / "units.zh.tsv",
}
"""Words with bundled examples, a dozen sentences for each sense; and the files."""

_SAME = 1e-10  # a smaller cosine distance is rounding error
_MOST = 5000  # occurrences; all pairwise distances are in memory at once


@dataclass(frozen=True)
class Example:
    """A sentence that contains the word."""

    sense: str
    """Empty if the file has none."""
    sentence: str
    line: int
    """Its line in the file, from 1."""


@dataclass(frozen=True, repr=False)
class Occurrences(BriefRepr, Reported):
    """Occurrences of a word, and their vectors."""

    examples: list[Example]
    """The sentence (N) of each occurrence; a sentence with the word twice is listed twice."""
    places: list[Place]
    """Place (N) of the occurrence among the tokens of its sentence."""
    vectors: Floats
    """(L + 1, N, D), the token layer first."""
    n_without: int = 0
    """Number of sentences that do not contain the word."""
    word: str = ""
    layer_names: list[str] = field(default_factory=list, repr=False)

    @property
    def senses(self) -> list[str]:
        """Sense (N) of each occurrence."""
        return [example.sense for example in self.examples]

    def report(self) -> Report:
        """Return the silhouette score of each layer, and the occurrences as points."""
        from elmokit.analysis.reports.scatter_report import scatter_report

        return scatter_report(self.word, self, numbered_layers(self.layer_names, len(self.vectors)))


def read_examples(path: Path) -> list[Example]:
    """Read lines of the form ``sense TAB sentence``, or only ``sentence``; skip blank lines."""
    if path != STANDARD_INPUT and not path.is_file():
        raise InputError(f"there is no file {path}; expected lines of sense, tab and sentence")
    found = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        sense, _, sentence = line.rpartition("\t")
        if "\t" in sense:
            raise InputError(
                f"{path}, line {number} has {line.count(chr(9))} tabs; expected a sense, one tab "
                "and a sentence, or only a sentence"
            )
        found.append(Example(sense.strip(), sentence, number))
    if not found:
        raise InputError(f"{path} is empty; expected lines of sense, tab and sentence")
    return found


def bundled_examples(word: str) -> list[Example]:
    """Read the bundled examples of a word."""
    if word.lower() not in BUNDLED:
        raise InputError(
            f"there are no bundled sentences with {shown(word)}; expected a file, or one of "
            f"{', '.join(BUNDLED)}"
        )
    return read_examples(BUNDLED[word.lower()])


def find_occurrences(elmo: Elmo, examples: Sequence[Example], word: str) -> Occurrences:
    """Encode a word in every example; a phrase is the mean of its tokens' vectors.

    Args:
        elmo: The model.
        examples: Sentences; those without the word are counted and left out.
        word: A word or phrase, regardless of case.
    """
    phrase = elmo.tokenize(word)
    check_phrase(phrase)
    tokens = [elmo.tokenize(example.sentence) for example in examples]
    places = [find_phrase(some, phrase) for some in tokens]
    found = [(i, place) for i, some in enumerate(places) for place in some]
    if not found:
        raise InputError(f"no sentence contains {word!r}; expected a word of the sentences")
    if len(found) > _MOST:
        raise InputError(f"{word!r} occurs {len(found):,} times; expected at most {_MOST:,}")
    needed = [some if having else [] for some, having in zip(tokens, places, strict=True)]
    encoded = elmo.encode(needed, layers="all")
    return Occurrences(
        [examples[i] for i, _ in found],
        [place for _, place in found],
        np.stack([encoded[i][:, place.tokens].mean(1) for i, place in found], 1),
        places.count([]),
        word,
        elmo.layer_names,
    )


def project(vectors: Floats) -> tuple[Floats, Floats]:
    """Project onto the first two principal components.

    A component's sign is arbitrary; making its largest weight positive gives the same picture for
    the same vectors. Vectors that coincide are all projected to (0, 0).

    Returns:
        Points (N, 2), and each component's share (2,) of the variance.
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
    """Return whether vectors (N, D) are equal up to rounding."""
    largest = float(np.abs(vectors).max(initial=0))
    return bool(np.abs(vectors - vectors[:1]).max(initial=0) <= 1e-5 * largest)


def silhouette(vectors: Floats, senses: Sequence[str]) -> float:
    """Mean silhouette score (Rousseeuw 1987) of vectors (N, D) by cosine distance, from -1 to 1.

    For each vector, a is the mean distance to the others of its sense, and b the mean distance to
    the nearest other sense. Its score is (b - a) / max(a, b), and 0 if it is the only one of its
    sense or both distances are 0. The mean is NaN for a single sense.
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
