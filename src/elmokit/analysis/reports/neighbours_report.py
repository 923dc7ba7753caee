"""Nearest neighbours: occurrences in context on the left, static word vectors on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from elmokit.analysis.index.neighbours import Neighbours, mark
from elmokit.analysis.reports.report import Report
from elmokit.io.figures import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DOTS = 40  # neighbours in a picture
_AROUND = 4  # tokens on either side of a neighbour in a picture


def neighbours_report(found: Neighbours, seconds: dict[str, float] | None = None) -> Report:
    """Tabulate the nearest occurrences beside the nearest words by their static vectors.

    Args:
        found: The neighbours.
        seconds: Timings to store with the numbers, by name.
    """
    left = [(one.marked(), one.cosine) for one in found.occurrences]
    right = found.words
    n = max(len(left), len(right))
    rows = [
        [*(left[i] if i < len(left) else ("", None)), *(right[i] if i < len(right) else ("", None))]
        for i in range(n)
    ]

    def draw(figure: Figure) -> None:
        _draw(figure, found)

    return Report(
        f"Nearest neighbours of {mark(found.tokens, found.position)}",
        ["in context", "cosine", "static", "static cosine"],
        rows,
        {
            "tokens": found.tokens,
            "position": found.position,
            "word": found.tokens[found.position],
            "layer": found.layer,
            "text_tokens": found.text_tokens,
            "seconds": seconds or {},
            "occurrences": [asdict(one) for one in found.occurrences],
            "words": [{"word": word, "cosine": cosine} for word, cosine in found.words],
        },
        draw if n else None,
        size=(6.8, 1.05 + 0.19 * min(n, _MOST_DOTS)),
        notes=found.notes,
    )


def _draw(figure: Figure, found: Neighbours) -> None:
    """Cosine similarity by rank: occurrences on the left, static words on the right."""
    contexts, words = found.occurrences[:_MOST_DOTS], found.words[:_MOST_DOTS]
    left, right = figure.subplots(1, 2, sharex=True)  # one scale for both
    asked = found.tokens[found.position].casefold()
    same = [one.word.casefold() == asked for one in contexts]
    labels = [short(one.marked(_AROUND), 48) for one in contexts]
    _dots(left, [one.cosine for one in contexts], labels, same)
    _dots(right, [value for _, value in words], [short(word) for word, _ in words], [])
    for axes, title in ((left, "in context"), (right, "static (token layer)")):
        axes.set_ylim(max(len(contexts), len(words)) - 0.5, -0.5)  # equal ranks at equal height
        axes.set_title(title)
        axes.set_xlabel("cosine similarity")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2)


def _dots(
    axes: Axes, cosines: Sequence[float], labels: Sequence[str], same: Sequence[bool]
) -> None:
    """One dot per neighbour, from top to bottom; filled for the queried word itself."""
    full = [i for i, is_same in enumerate(same) if is_same]
    hollow = [i for i in range(len(cosines)) if i not in full]
    for name, places, fill in (
        ("same word", full, COLOURS[0]),
        ("other word", hollow, "white"),
    ):
        values = [cosines[i] for i in places]
        axes.scatter(values, places, s=20, color=fill, edgecolors=COLOURS[0], label=name, zorder=2)
    axes.set_yticks(range(len(labels)), labels)
