"""Similarities as reports: a word's pairs as bars, all tokens of two sentences as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.similarity import TokenPairs, WordPair
from elmokit.io.figures import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BARS = 30  # pairs in one picture
_CELL = 0.17  # inches, for a label of 7 points
_PANEL = 5.0  # inches at most; the cells of longer sentences are smaller


def word_report(word: str, pairs: Sequence[WordPair], layers: Sequence[str]) -> Report:
    """Cosines of a word's occurrences in two sentences, a row a pair.

    Args:
        word: The word, for the labels.
        pairs: What :func:`elmokit.analysis.similarity.word_similarity` found.
        layers: Names (L + 1) of the layers.
    """
    labels = [f"{word} {p.first + 1} ~ {word} {p.second + 1}" for p in pairs]
    drawn = min(len(pairs), _MOST_BARS)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        height = 0.8 / len(layers)
        for k, name in enumerate(layers):
            places = np.arange(drawn) + (k - (len(layers) - 1) / 2) * height
            values = [float(pair.cosines[k]) for pair in pairs[:drawn]]
            bars = axes.barh(places, values, height, color=COLOURS[k % len(COLOURS)], label=name)
            axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=6)
        axes.set_yticks(range(drawn), [short(label, 40) for label in labels[:drawn]])
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_xlabel("cosine")
        axes.set_xlim(right=1.12)
        if drawn < len(pairs):
            axes.set_title(f"the first {drawn} of {len(pairs):,} pairs")
        figure.legend(loc="outside lower center", ncols=min(3, len(layers)))

    rows: list[list[Value]] = [
        [label, *map(float, p.cosines)] for label, p in zip(labels, pairs, strict=True)
    ]
    title = f"Cosines of {word!r} in two sentences"
    size = (4.6, 1.0 + drawn * max(0.4, 0.16 * len(layers)))
    return Report(title, ["pair", *layers], rows, {"word": word}, draw, size)


def heat_map_report(pairs: TokenPairs, layers: Sequence[str]) -> Report:
    """Cosines of all pairs of tokens, a row a pair; a panel a layer in the picture.

    Those of the whole sentences are under ``sentence_cosines`` in the JSON file, and above the
    panels.

    Args:
        pairs: What :func:`elmokit.analysis.similarity.token_pairs` found.
        layers: Names (L + 1) of the layers.
    """
    n, m = len(pairs.first), len(pairs.second)
    rows: list[list[Value]] = [
        [first, i + 1, second, j + 1, *map(float, pairs.cosines[:, i, j])]
        for i, first in enumerate(pairs.first)
        for j, second in enumerate(pairs.second)
    ]
    columns = ["first", "place in first", "second", "place in second", *layers]
    width, height = (max(1.1, min(_PANEL, count * _CELL)) for count in (m, n))
    size = (1.7 + len(layers) * (width + 0.15), height + 1.3)
    wholes = dict(zip(layers, map(float, pairs.sentences), strict=True))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(layers), sharey=True, squeeze=False)[0]
        lowest = min(0.0, math.floor(float(pairs.cosines.min()) * 10) / 10)
        for axes, (name, whole), cosines in zip(panels, wholes.items(), pairs.cosines, strict=True):
            image = axes.imshow(cosines, "cividis", aspect="auto", vmin=lowest, vmax=1)
            axes.set_title(f"{name}\nsentences {whole:.2f}")
            axes.tick_params(length=0, labelsize=7)
            every = _every(m, width)
            axes.set_xticks(range(0, m, every), map(short, pairs.second[::every]), rotation=90)
        every = _every(n, height)
        panels[0].set_yticks(range(0, n, every), map(short, pairs.first[::every]))
        figure.colorbar(image, ax=panels, label="cosine")

    about = {"first": pairs.first, "second": pairs.second, "sentence_cosines": wholes}
    return Report("Cosines of all pairs of tokens", columns, rows, about, draw, size)


def _every(count: int, inches: float) -> int:
    """Which labels have room: each, every second, and so on."""
    return max(1, math.ceil(0.12 * count / inches))
