"""How contextual vectors are, layer by layer: the measures of Ethayarajh (2019).

Vectors of a model lie in a cone, so that even those of different words are alike; that likeness,
the anisotropy, is taken off the other measures to adjust them.

The share of a static vector is defined in that article as σ₁² / Σ σᵢ², by the singular values of a
word's occurrences. Its figures, however, come from a program that gives the variance about the mean
along the first singular vector (explained_variance_ratio_ of scikit-learn's TruncatedSVD), a much
smaller number. Both are here, the latter as "variance along it".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.progress import DelayedProgress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vectors = npt.NDArray[np.floating[Any]]
Groups = npt.NDArray[np.int64]
"""(N,), to which group each occurrence belongs."""

LEAST_CONTEXTS = 5
"""In how many sentences a word must stand to be counted."""


@dataclass(frozen=True)
class Geometry:
    """Measures of one layer; NaN where the text is too short for one."""

    anisotropy: float
    """Mean cosine of different words in different sentences."""
    self_similarity: float
    """Mean cosine of a word's occurrences, mean over words."""
    self_similarity_adjusted: float
    intra_sentence: float
    """Mean cosine of a token to the mean of its sentence, mean over sentences."""
    intra_sentence_adjusted: float
    static_share: float
    """How much of a word's occurrences their first principal component is, mean over words."""
    static_share_adjusted: float
    """Less that of as many random occurrences."""
    variance_along: float
    """Share of the variance about a word's mean along that component, mean over words."""


NAMES = (
    "anisotropy",
    "self-similarity",
    "self-similarity adj",
    "intra-sentence",
    "intra-sentence adj",
    "static share",
    "static share adj",
    "variance along it",
)
"""What the fields of :class:`Geometry` are called in tables."""

_NAN = float("nan")
PUBLISHED = (
    Geometry(0.008, 1.0, 0.992, 0.318, 0.310, _NAN, _NAN, _NAN),
    Geometry(0.157, 0.744, 0.587, 0.582, 0.425, _NAN, _NAN, 0.033),
    Geometry(0.136, 0.642, 0.506, 0.621, 0.485, _NAN, _NAN, 0.039),
)
"""The original ELMo on sentences of SemEval's STS tasks 2012 to 2016, by layer.

Means of the tables in the folder elmo of the article's program, github.com/kawine/contextual: of
1,000 sentences, and of 6,875 words for self-similarity and variance. To adjust the variance, 0.003
and 0.004, those of 1,000 random occurrences, are taken off there.
"""


@dataclass(frozen=True)
class GeometryResult:
    """Measures of all layers, and what they were taken of."""

    layers: list[Geometry]
    """The token layer first."""
    n_tokens: int
    n_sentences: int
    n_words: int
    """Distinct words in enough sentences to be counted."""


def geometry(elmo: Elmo, sentences: Sequence[Sequence[str]], seed: int = 0) -> GeometryResult:
    """Measure every layer.

    Args:
        elmo: The model.
        sentences: Tokens of different sentences, with two different words at least.
        seed: Of the random occurrences.
    """
    numbers: dict[str, int] = {}
    words = np.array([numbers.setdefault(t, len(numbers)) for s in sentences for t in s], np.int64)
    if len(numbers) < 2:
        raise InputError("the text has no two different words to compare; give more of it")
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
    """The measures of some occurrences.

    Args:
        vectors: (N, D).
        words: (N,), which word each is.
        sentences: (N,), in which sentence each stands.
        rng: Chooses the random occurrences that the static share is compared with.
        bar: Told of every word that is done.
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
        # few vectors have a large share along some direction, whatever they are
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
    """Mean cosine of all pairs of different words in different sentences; NaN if there is none.

    Where there is one sentence only, of all pairs of different words. Cosines of all pairs add up
    to the square of the sum of unit vectors, so that no pair has to be looked at.

    Args:
        units: Occurrences (N, D), of length 1.
        words: (N,), which word each is.
        sentences: (N,), in which sentence each stands.
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
    """Mean cosine of all pairs of each word's occurrences (W,); NaN for a word that is there once.

    Args:
        units: Occurrences (N, D), of length 1.
        words: (N,), which of W words each is.
    """
    n = np.bincount(words).astype(float)
    lengths = np.bincount(words, (units.astype(np.float64) ** 2).sum(1))  # n, but for zeros
    squares = (_sums(units, words) ** 2).sum(1)
    pairs = n * (n - 1)
    return np.where(pairs > 0, (squares - lengths) / np.maximum(pairs, 1), _NAN)


def intra_sentence_similarity(vectors: Vectors, sentences: Groups) -> npt.NDArray[np.float64]:
    """Mean cosine of tokens to the mean of their sentence, for each with two tokens or more.

    Args:
        vectors: Occurrences (N, D).
        sentences: (N,), in which of S sentences each stands.
    """
    n = np.bincount(sentences)
    middles = unit(_sums(vectors, sentences))
    cosines = (unit(vectors) * middles[sentences]).sum(1)
    return (np.bincount(sentences, cosines) / np.maximum(n, 1))[n > 1]


def static_share(vectors: Vectors) -> tuple[float, float]:
    """How much of vectors (N, D) lies along their first singular vector v.

    Returns:
        σ₁² / Σ σᵢ², which is 1 where all have one direction; and the share of the variance about
        the mean along v, NaN where there is no variance.
    """
    x = vectors.astype(np.float64)
    n, dim = x.shape
    squares, axes = np.linalg.eigh(x @ x.T if n <= dim else x.T @ x)
    total = float((x**2).sum())
    if total == 0:
        return _NAN, _NAN
    along = axes[:, -1] * np.sqrt(max(squares[-1], 0)) if n <= dim else x @ axes[:, -1]
    variance = float(x.var(0).sum())
    # float16 leaves a little variance where there is none
    spread = float(along.var()) / variance if variance > 1e-9 * total else _NAN
    return min(1.0, float(squares[-1]) / total), spread


def frequent_words(words: Groups, sentences: Groups) -> Groups:
    """The words, by number, that stand in :data:`LEAST_CONTEXTS` sentences or more."""
    pairs = np.unique(np.stack([words, sentences]), axis=1)
    return np.flatnonzero(np.bincount(pairs[0]) >= LEAST_CONTEXTS).astype(np.int64)


def mean(values: Vectors) -> float:
    """Mean of what is not NaN; NaN if nothing is left."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else _NAN


def geometry_report(result: GeometryResult) -> Report:
    """A table of measures by layers, and pictures of four."""
    published = PUBLISHED if len(result.layers) == len(PUBLISHED) else ()
    columns = [f"layer {number}" for number in range(len(result.layers))]
    columns += [f"ELMo {number}" for number in range(len(published))]
    shown = [*result.layers, *published]
    rows: list[list[Value]] = [
        [name, *values] for name, *values in zip(NAMES, *map(astuple, shown), strict=True)
    ]

    def draw(figure: Figure) -> None:
        _draw(figure, result.layers, published)

    return Report(
        f"Geometry of {result.n_tokens:,} vectors in {result.n_sentences:,} sentences; "
        f"{result.n_words:,} words in {LEAST_CONTEXTS} sentences or more"
        + ("; ELMo: published figures" if published else ""),
        ["measure", *columns],
        rows,
        {
            "tokens": result.n_tokens,
            "sentences": result.n_sentences,
            "words": result.n_words,
            "least_contexts": LEAST_CONTEXTS,
            "ELMo": "Ethayarajh (2019), the original ELMo on sentences of STS 2012-2016; "
            "means of the tables at github.com/kawine/contextual",
        },
        draw,
        size=(3.4, 3.6),
    )


_PANELS = {
    "anisotropy": "anisotropy",
    "self_similarity_adjusted": "self-similarity,\nadjusted",
    "intra_sentence_adjusted": "intra-sentence similarity,\nadjusted",
    "static_share_adjusted": "static share,\nadjusted",
}


def _draw(figure: Figure, layers: Sequence[Geometry], published: Sequence[Geometry]) -> None:
    from elmokit.io.figures import COLOURS, MARKERS

    lines = [("this model", layers, "-"), ("ELMo, published", published, "--")]
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (field, title) in zip(panels.flat, _PANELS.items(), strict=True):
        for number, (label, measured, style) in enumerate(lines[: 2 if published else 1]):
            axes.plot(
                range(len(measured)),
                [getattr(layer, field) for layer in measured],
                style,
                color=COLOURS[number],
                marker=MARKERS[number],
                markersize=4,
                label=label,
                clip_on=False,
            )
        axes.set_title(title)
        axes.set_xticks(range(len(layers)))
    low, high = axes.get_ylim()
    axes.set_ylim(min(0, low), max(1, high))
    for axes in panels[1]:
        axes.set_xlabel("layer")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)


def _sums(vectors: Vectors, groups: Groups) -> npt.NDArray[np.float64]:
    """Sums (G, D) of the vectors (N, D) of each group that has any."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.add.reduceat(vectors[order], starts, axis=0, dtype=np.float64)
