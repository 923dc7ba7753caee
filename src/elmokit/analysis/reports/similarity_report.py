"""Cosine similarity: bars for a word in two sentences, a heat map for all their tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from elmokit.analysis.phrases import notes_on_longer
from elmokit.analysis.reports.report import Report, Value, fixed
from elmokit.analysis.similarity import TokenPairs, WordPair
from elmokit.io.figures import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BARS = 30  # most pairs in one picture
_CELL = 0.17  # inches, for a label of 7 points
_PANEL = 5.0  # most inches; longer sentences get smaller cells


def word_report(
    word: str, pairs: Sequence[WordPair], layers: Sequence[str], sentences: Sequence[str] = ()
) -> Report:
    """Tabulate a word's cosine similarity in two sentences, one row per pair of occurrences.

    Args:
        word: The word, for the labels.
        pairs: Result of :func:`elmokit.analysis.similarity.word_similarity`.
        layers: Names (L + 1) of the layers.
        sentences: The two sentences, for the title.
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
            axes.bar_label(bars, [fixed(v, 2) for v in values], padding=2, fontsize=6)
        axes.set_yticks(range(drawn), [short(label, 40) for label in labels[:drawn]])
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_xlabel("cosine similarity")
        axes.set_ylabel("position in\nsentence 1 ~ 2")
        axes.set_xlim(right=1.12)
        if drawn < len(pairs):
            axes.set_title(f"the first {drawn} of {len(pairs):,} pairs")
        figure.legend(loc="outside lower center", ncols=min(3, len(layers)))

    rows: list[list[Value]] = [
        [label, *map(float, p.cosines)] for label, p in zip(labels, pairs, strict=True)
    ]
    title = f"Cosine similarity of {word!r} in two sentences"
    title += "".join(f"; {n}: {short(s, 60)}" for n, s in enumerate(sentences, 1))
    size = (4.6, 1.0 + drawn * max(0.4, 0.16 * len(layers)))
    longer = {p.first: p.longer[0] for p in pairs}, {p.second: p.longer[1] for p in pairs}
    notes = notes_on_longer(word, [token for side in longer for token in side.values()])
    return Report(title, ["pair", *layers], rows, {"word": word}, draw, size, notes=notes)


def heat_map_report(pairs: TokenPairs, layers: Sequence[str]) -> Report:
    """Tabulate the cosine similarity of all token pairs, and draw one heat map per layer.

    The cosine similarity of the whole sentences is above the panels, and in the JSON file under
    ``sentence_cosines``.

    Args:
        pairs: Result of :func:`elmokit.analysis.similarity.token_pairs`.
        layers: Names (L + 1) of the layers.
    """
    n, m = len(pairs.first), len(pairs.second)
    rows: list[list[Value]] = [
        [first, i + 1, second, j + 1, *map(float, pairs.cosines[:, i, j])]
        for i, first in enumerate(pairs.first)
        for j, second in enumerate(pairs.second)
    ]
    columns = ["first", "first position", "second", "second position", *layers]
    width, height = (max(1.1, min(_PANEL, count * _CELL)) for count in (m, n))
    size = (1.9 + len(layers) * (width + 0.15), height + 1.45)
    wholes = dict(zip(layers, map(float, pairs.sentences), strict=True))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(layers), sharey=True, squeeze=False)[0]
        lowest = min(0.0, math.floor(float(pairs.cosines.min()) * 10) / 10)
        for axes, (name, whole), cosines in zip(panels, wholes.items(), pairs.cosines, strict=True):
            image = axes.imshow(cosines, "cividis", aspect="auto", vmin=lowest, vmax=1)
            axes.set_title(f"{name}\nwhole sentences {fixed(whole, 2)}")
            axes.tick_params(length=0, labelsize=7)
            every = _every(m, width)
            axes.set_xticks(range(0, m, every), map(short, pairs.second[::every]), rotation=90)
            axes.set_xlabel("second sentence")
        every = _every(n, height)
        panels[0].set_yticks(range(0, n, every), map(short, pairs.first[::every]))
        panels[0].set_ylabel("first sentence")
        figure.colorbar(image, ax=panels, label="cosine similarity")

    about = {"first": pairs.first, "second": pairs.second, "sentence_cosines": wholes}
    return Report("Cosine similarity of all token pairs", columns, rows, about, draw, size)


def _every(count: int, inches: float) -> int:
    """Return the step between labels that leaves room for each."""
    return max(1, math.ceil(0.12 * count / inches))
