"""How contextual each layer's vectors are: the measures of Ethayarajh (2019).

A model's vectors occupy a cone, so even vectors of different words have a high cosine similarity.
That baseline, the anisotropy, is subtracted from the other measures to adjust them.

The article defines the maximum explainable variance (MEV) as σ₁² / Σ σᵢ², over the singular values
of a word's occurrences. Its published figures, however, come from a program that computes the share
of the variance around the mean along the first singular vector (explained_variance_ratio_ of
scikit-learn's TruncatedSVD), a much smaller number. Both are computed here; the latter is called
"explained variance".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Reported
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.notebook import BriefRepr
from elmokit.io.progress import DelayedProgress

Vectors = npt.NDArray[np.floating[Any]]
Groups = npt.NDArray[np.int64]
"""The group (N,) of each occurrence."""

LEAST_CONTEXTS = 5
"""Sentences a word must occur in to be counted."""


@dataclass(frozen=True)
class Geometry:
    """Measures of one layer; NaN if the text is too short for one."""

    anisotropy: float
    """Mean cosine similarity of different words in different sentences."""
    self_similarity: float
    """Mean cosine similarity of a word's occurrences, averaged over words."""
    self_similarity_adjusted: float
    intra_sentence: float
    """Mean cosine similarity of a token to its sentence mean, averaged over sentences."""
    intra_sentence_adjusted: float
    static_share: float
    """Maximum explainable variance (MEV), averaged over words."""
    static_share_adjusted: float
    """MEV minus that of equally many random occurrences."""
    variance_along: float
    """Share of the variance around a word's mean along the first component, averaged over words."""


NAMES = (
    "anisotropy",
    "self-similarity",
    "self-similarity adj",
    "intra-sentence",
    "intra-sentence adj",
    "MEV",
    "MEV adj",
    "explained variance",
)
"""Names of the fields of :class:`Geometry` in tables."""

_NAN = float("nan")
PUBLISHED = (
    Geometry(0.008, 1.0, 0.992, 0.318, 0.310, _NAN, _NAN, _NAN),
    Geometry(0.157, 0.744, 0.587, 0.582, 0.425, _NAN, _NAN, 0.033),
    Geometry(0.136, 0.642, 0.506, 0.621, 0.485, _NAN, _NAN, 0.039),
)
"""The original ELMo on sentences of SemEval's STS tasks 2012 to 2016, by layer.

Means over the tables in the folder elmo of the article's program, github.com/kawine/contextual:
1,000 sentences, and 6,875 words for self-similarity and variance. The article adjusts the variance
by subtracting that of 1,000 random occurrences, 0.003 and 0.004.
"""


@dataclass(frozen=True, repr=False)
class GeometryResult(BriefRepr, Reported):
    """Measures of all layers, and the size of the text."""

    layers: list[Geometry]
    """The token layer first."""
    n_tokens: int
    n_sentences: int
    n_words: int
    """Distinct words that occur in enough sentences to be counted."""

    def report(self) -> Report:
        """Return a table of the measures, and four of them as lines."""
        from elmokit.analysis.reports.geometry_report import geometry_report

        return geometry_report(self)


def geometry(elmo: Elmo, sentences: Sequence[Sequence[str]], seed: int = 0) -> GeometryResult:
    """Measure every layer.

    Args:
        elmo: The model.
        sentences: Tokens of distinct sentences, with at least two different words.
        seed: Seed of the random occurrences.
    """
    numbers: dict[str, int] = {}
    words = np.array([numbers.setdefault(t, len(numbers)) for s in sentences for t in s], np.int64)
    if len(numbers) < 2:
        raise InputError("the text has fewer than two different words; expected more text")
    places = np.repeat(np.arange(len(sentences)), [len(s) for s in sentences])
    arrays = elmo.encode([list(s) for s in sentences], "all", dtype=np.float16)
    vectors = np.concatenate(arrays, 1)
    del arrays
    n_words = len(frequent_words(words, places))
    with DelayedProgress("measuring", elmo.n_layers * n_words, "words") as bar:
        layers = [
            measure(layer.astype(np.float32), words, places, np.random.default_rng(seed), bar)
            for layer in vectors
        ]
    return GeometryResult(layers, len(words), len(sentences), n_words)


def measure(
    vectors: Vectors,
    words: Groups,
    sentences: Groups,
    rng: np.random.Generator,
    bar: DelayedProgress | None = None,
) -> Geometry:
    """Measure some occurrences.

    Args:
        vectors: (N, D).
        words: The word (N,) of each.
        sentences: The sentence (N,) of each.
        rng: Chooses the random occurrences that adjust the MEV.
        bar: Advanced by one for every word.
    """
    units = unit(vectors)
    cone = anisotropy(units, words, sentences)
    counted = frequent_words(words, sentences)
    alike = self_similarity(units, words)[counted]
    within = intra_sentence_similarity(vectors, sentences)
    order = np.argsort(words, kind="stable")
    ends = np.cumsum(np.bincount(words))
    shares = []
    for word in counted:
        own = order[ends[word - 1] if word else 0 : ends[word]]
        # a few vectors always have a large MEV, whatever they are
        others = rng.choice(len(vectors), len(own), replace=False)
        shares.append((*static_share(vectors[own]), static_share(vectors[others])[0]))
        if bar is not None:
            bar.advance(1)
    share, along, random_share = np.array(shares).reshape(-1, 3).T
    return Geometry(
        cone,
        mean(alike),
        mean(alike) - cone,
        mean(within),
        mean(within) - cone,
        mean(share),
        mean(share - random_share),
        mean(along),
    )


def anisotropy(units: Vectors, words: Groups, sentences: Groups) -> float:
    """Mean cosine similarity of all pairs of different words in different sentences.

    NaN without such a pair. For a single sentence, all pairs of different words count. The cosines
    of all pairs sum to the squared sum of the unit vectors, so no pair is computed by itself.

    Args:
        units: Occurrences (N, D), of length 1.
        words: The word (N,) of each.
        sentences: The sentence (N,) of each.
    """
    if sentences.min() == sentences.max():
        sentences = np.arange(len(words))
    both = np.unique(np.stack([words, sentences]), axis=1, return_inverse=True)[1].reshape(-1)
    everything = np.zeros_like(words)
    total = n_pairs = 0.0
    for sign, groups in ((1, everything), (-1, words), (-1, sentences), (1, both)):
        total += sign * float((_sums(units, groups) ** 2).sum())
        n_pairs += sign * float((np.bincount(groups).astype(float) ** 2).sum())
    return total / n_pairs if n_pairs else _NAN


def self_similarity(units: Vectors, words: Groups) -> npt.NDArray[np.float64]:
    """Mean cosine similarity (W,) of all pairs of each word's occurrences; NaN for a single one.

    Args:
        units: Occurrences (N, D), of length 1.
        words: Which of W words each is (N,).
    """
    n = np.bincount(words).astype(float)
    # n, or less if some vectors are zero
    lengths = np.bincount(words, (units.astype(np.float64) ** 2).sum(1))
    squares = (_sums(units, words) ** 2).sum(1)
    pairs = n * (n - 1)
    return np.where(pairs > 0, (squares - lengths) / np.maximum(pairs, 1), _NAN)


def intra_sentence_similarity(vectors: Vectors, sentences: Groups) -> npt.NDArray[np.float64]:
    """Mean cosine similarity of tokens to their sentence mean, per sentence of two or more tokens.

    Args:
        vectors: Occurrences (N, D).
        sentences: Which of S sentences each is in (N,).
    """
    n = np.bincount(sentences)
    middles = unit(_sums(vectors, sentences))
    cosines = (unit(vectors) * middles[sentences]).sum(1)
    return (np.bincount(sentences, cosines) / np.maximum(n, 1))[n > 1]


def static_share(vectors: Vectors) -> tuple[float, float]:
    """Maximum explainable variance of vectors (N, D), by their first singular vector v.

    Returns:
        σ₁² / Σ σᵢ², which is 1 for vectors of one direction; and the share of the variance around
        the mean along v, NaN without variance.
    """
    x = vectors.astype(np.float64)
    n, dim = x.shape
    squares, axes = np.linalg.eigh(x @ x.T if n <= dim else x.T @ x)
    total = float((x**2).sum())
    if total == 0:
        return _NAN, _NAN
    along = axes[:, -1] * np.sqrt(max(squares[-1], 0)) if n <= dim else x @ axes[:, -1]
    variance = float(x.var(0).sum())
    # float16 rounding leaves a little variance in equal vectors
    spread = float(along.var()) / variance if variance > 1e-9 * total else _NAN
    return min(1.0, float(squares[-1]) / total), spread


def frequent_words(words: Groups, sentences: Groups) -> Groups:
    """Numbers of the words that occur in at least :data:`LEAST_CONTEXTS` sentences."""
    pairs = np.unique(np.stack([words, sentences]), axis=1)
    return np.flatnonzero(np.bincount(pairs[0]) >= LEAST_CONTEXTS).astype(np.int64)


def mean(values: Vectors) -> float:
    """Mean of the values that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else _NAN


def _sums(vectors: Vectors, groups: Groups) -> npt.NDArray[np.float64]:
    """Sums (G, D) of the vectors (N, D) of each non-empty group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.add.reduceat(vectors[order], starts, axis=0, dtype=np.float64)
