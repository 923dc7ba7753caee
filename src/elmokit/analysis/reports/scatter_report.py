"""A word's occurrences as points in the plane: one panel per layer, one colour per sense."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elmokit.analysis.phrases import notes_on_longer
from elmokit.analysis.reports.report import Report, Value, fixed
from elmokit.analysis.scatter import Floats, Occurrences, coincide, project, silhouette
from elmokit.io.figures import COLOURS, MARKERS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IN_A_ROW = 3  # panels
_MOST_NUMBERED = 30  # points; the numbers of more would overlap


def scatter_report(word: str, found: Occurrences, layers: Sequence[str]) -> Report:
    """Tabulate the silhouette score of each layer, and draw its first two principal components.

    The JSON file has the points under ``points``, with their sentences. If there are few, each
    shows the line of its sentence in the file.

    Args:
        word: The word, for the title.
        found: Its occurrences.
        layers: Names (L + 1) of the layers.
    """
    scores = [silhouette(vectors, found.senses) for vectors in found.vectors]
    planes = [project(vectors) for vectors in found.vectors]
    rows: list[list[Value]] = [
        [name, score, float(shares[0]), float(shares[1])]
        for name, score, (_, shares) in zip(layers, scores, planes, strict=True)
    ]
    senses = list(dict.fromkeys(found.senses))
    n_rows = math.ceil(len(layers) / _IN_A_ROW)
    apart = [not coincide(vectors) for vectors in found.vectors]
    few = any(apart) and len(found.senses) <= _MOST_NUMBERED
    numbers = [example.line for example in found.examples] if few else []

    def draw(figure: Figure) -> None:
        from matplotlib.lines import Line2D

        panels = figure.subplots(n_rows, min(_IN_A_ROW, len(layers)), squeeze=False).flatten()
        for k, axes in enumerate(panels):
            if k >= len(layers):
                axes.set_axis_off()
                continue
            _draw_points(axes, *planes[k], found.senses, senses, numbers if apart[k] else [])
            score = "" if math.isnan(scores[k]) else f"\nsilhouette score {fixed(scores[k], 2)}"
            axes.set_title(layers[k] + score)
            if len(found.senses) > 1 and not apart[k]:
                axes.text(0.5, 0.62, "all points coincide", transform=axes.transAxes, ha="center")
        handles, labels = panels[0].get_legend_handles_labels()
        if numbers:
            handles.append(Line2D([], [], linestyle=""))
            labels.append("1, 2, …: line of the file (sentences in the .json)")
        if senses == [""]:
            handles, labels = handles[1:], labels[1:]
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(handles)))

    columns = ["layer", "silhouette score", "PC 1 variance", "PC 2 variance"]
    n = len(found.senses)
    title = f"{n:,} occurrence{'' if n == 1 else 's'} of {word!r}" + _counts(found.senses)
    size = (2.3 * min(_IN_A_ROW, len(layers)), 0.5 + 2.3 * n_rows + 0.17 * (len(senses) // 5))
    about = {"word": word, "distance": "cosine", "points": _points(found, layers, planes)}
    return Report(title, columns, rows, about, draw, size, notes=_notes(word, found))


def _draw_points(
    axes: Axes,
    points: Floats,
    shares: Floats,
    senses: Sequence[str],
    names: Sequence[str],
    numbers: Sequence[int],
) -> None:
    for k, name in enumerate(names):
        mine = points[[sense == name for sense in senses]]
        axes.scatter(
            mine[:, 0],
            mine[:, 1],
            s=18,
            color=COLOURS[k % len(COLOURS)],
            # with more senses than colours, a repeated colour gets another marker
            marker=MARKERS[(k + k // len(COLOURS)) % len(MARKERS)],
            alpha=0.8,
            linewidths=0,
            label=short(name, 24) or "no sense",
        )
    for (x, y), number in zip(_beside(points) if numbers else [], numbers, strict=True):
        axes.text(x, y, str(number), fontsize=6, ha="center", va="center")
    if shares.any():
        axes.set_xlabel(f"PC 1 ({shares[0]:.0%})")
        axes.set_ylabel(f"PC 2 ({shares[1]:.0%})", labelpad=1)
    axes.set_aspect("equal", adjustable="datalim")  # keeps distances true
    axes.set_xticks([])
    axes.set_yticks([])


def _beside(points: Floats) -> Floats:
    """Places (N, 2) for the points' numbers: beside them, away from other points and numbers."""
    angles = np.arange(8) * np.pi / 4
    around = 0.05 * np.ptp(points, axis=0).max() * np.stack([np.cos(angles), np.sin(angles)], 1)
    taken, places = points, []
    for point in points:
        distances = np.linalg.norm((point + around)[:, None] - taken, axis=-1)  # (8, taken)
        places.append(point + around[distances.min(1).argmax()])
        taken = np.concatenate([taken, places[-1:]])
    return np.array(places)


def _notes(word: str, found: Occurrences) -> list[str]:
    notes = notes_on_longer(word, [place.longer for place in found.places])
    if n := found.n_without:
        lines = "1 line does" if n == 1 else f"{n:,} lines do"
        notes.append(f"{lines} not contain {word!r} and {'is' if n == 1 else 'are'} left out")
    return notes


def _points(
    found: Occurrences, layers: Sequence[str], planes: Sequence[tuple[Floats, Floats]]
) -> list[dict[str, Any]]:
    return [
        {
            "line": example.line,
            "sense": example.sense,
            "sentence": example.sentence,
            "position": place.start + 1,
            **{
                name: [float(x) for x in points[i]]
                for name, (points, _) in zip(layers, planes, strict=True)
            },
        }
        for i, (example, place) in enumerate(zip(found.examples, found.places, strict=True))
    ]


def _counts(senses: Sequence[str]) -> str:
    counts = Counter(senses)
    if set(counts) == {""}:
        return ""
    if len(counts) > 5:
        return f" ({len(counts)} senses)"
    return " (" + ", ".join(f"{name or 'no sense'} {n:,}" for name, n in counts.items()) + ")"
