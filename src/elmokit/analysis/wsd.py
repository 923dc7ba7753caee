"""Which sense a word has, by the nearest average of its senses' vectors in a tagged text.

As in the paper (section 5.3): the vectors of all occurrences of a sense are averaged; a word gets
the sense whose average is nearest, and the first sense of WordNet where none was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.analysis.senses import Senses, TaggedSentence, Target
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.progress import DelayedProgress

Vectors = npt.NDArray[np.float32]

_AT_ONCE = 2048  # sentences


@dataclass
class SenseVectors:
    """Average vectors of senses, by layer."""

    keys: list[str]
    vectors: Vectors
    """(K, layers, D), of length 1."""

    def __post_init__(self) -> None:
        self._row = {key: row for row, key in enumerate(self.keys)}

    @classmethod
    def train(cls, elmo: Elmo, sentences: Iterable[TaggedSentence]) -> SenseVectors:
        """Averages over a tagged text."""
        rows: dict[str, int] = {}
        sums = np.zeros((1024, elmo.n_layers, elmo.dim), np.float32)
        for target, vector in _occurrences(elmo, sentences):
            for key in target.keys:
                row = rows.setdefault(key, len(rows))
                if row == len(sums):
                    sums = np.concatenate([sums, np.zeros_like(sums)])
                sums[row] += vector
        if not rows:
            raise InputError("no word of the text has a sense; give a tagged text")
        return cls(list(rows), _unit(sums[: len(rows)]))

    def nearest(self, vector: Vectors, candidates: Sequence[str], layer: int) -> str | None:
        """The candidate nearest to a vector (layers, D) in one layer; None if none was seen."""
        known = [key for key in candidates if key in self._row]
        if not known:
            return None
        rows = [self._row[key] for key in known]
        return known[int(np.argmax(self.vectors[rows, layer] @ vector[layer]))]

    def save(self, path: Path) -> None:
        """Write to an npz file, in float16."""
        np.savez(path, keys=np.array(self.keys), vectors=self.vectors.astype(np.float16))

    @classmethod
    def load(cls, path: Path) -> SenseVectors:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path) as stored:
                return cls(stored["keys"].tolist(), _unit(stored["vectors"].astype(np.float32)))
        except (OSError, KeyError, ValueError) as error:
            raise FormatError(f"{path} holds no sense vectors: {error}") from error


@dataclass(frozen=True)
class WsdScore:
    """How many senses are right."""

    f1: float
    """In per cent; every word gets an answer, so that precision and recall are the same."""
    n: int
    seen: float
    """Share of words for which a sense had been seen."""


def evaluate(
    elmo: Elmo, vectors: SenseVectors, senses: Senses, sentences: Sequence[TaggedSentence]
) -> tuple[list[WsdScore], WsdScore]:
    """Scores by layer, and that of WordNet's first sense alone."""
    right = np.zeros(elmo.n_layers + 1)
    n = seen = 0
    for target, vector in _occurrences(elmo, sentences):
        if not target.keys:
            continue
        candidates = senses.of(target.lemma, target.pos)
        first = candidates[0] if candidates else ""
        n += 1
        right[-1] += first in target.keys
        known = False
        for layer in range(elmo.n_layers):
            found = vectors.nearest(vector, candidates, layer)
            known |= found is not None
            right[layer] += (found or first) in target.keys
        seen += known
    if not n:
        raise InputError("no word of the text has a right sense to compare with")
    scores = [WsdScore(100 * float(r) / n, n, seen / n) for r in right]
    return scores[:-1], scores[-1]


def _occurrences(
    elmo: Elmo, sentences: Iterable[TaggedSentence]
) -> Iterable[tuple[Target, Vectors]]:
    """Every target with its vector (layers, D), the mean over its tokens, of length 1."""
    remaining = iter(sentences)
    with DelayedProgress("reading tagged text", None, "sentences") as bar:
        while some := list(islice(remaining, _AT_ONCE)):
            layers = elmo.encode([s.tokens for s in some], "all", progress=False)
            for sentence, array in zip(some, layers, strict=True):
                for target in sentence.targets:
                    yield target, _unit(array[:, target.start : target.end].mean(1))
            bar.advance(len(some))


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
