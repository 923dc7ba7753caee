"""A word's occurrences as points in the plane, a panel a layer, a colour a sense."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.scatter import Floats, Occurrences, coincide, project, silhouette
from elmokit.io.figures import COLOURS, MARKERS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IN_A_ROW = 3  # panels


def scatter_report(word: str, found: Occurrences, layers: Sequence[str]) -> Report:
    """Silhouette of each layer by cosine distance, and its two principal components.

    The points themselves are under ``points`` in the JSON file.

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

    def draw(figure: Figure) -> None:
        panels = figure.subplots(n_rows, min(_IN_A_ROW, len(layers)), squeeze=False).flatten()
        for k, axes in enumerate(panels):
            if k >= len(layers):
                axes.set_axis_off()
                continue
            _draw_points(axes, *planes[k], found.senses, senses)
            score = "" if math.isnan(scores[k]) else f"\nsilhouette {scores[k]:.2f}"
            axes.set_title(layers[k] + score)
            if len(found.senses) > 1 and coincide(found.vectors[k]):
                axes.text(0.5, 0.62, "all points coincide", transform=axes.transAxes, ha="center")
        figure.suptitle(short(title, 90), fontsize=9)
        if senses != [""]:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(senses)))

    columns = ["layer", "silhouette (cosine)", "variance of PC 1", "variance of PC 2"]
    n = len(found.senses)
    title = f"{word!r} in {n:,} place{'' if n == 1 else 's'}" + _counts(found.senses)
    size = (2.3 * min(_IN_A_ROW, len(layers)), 0.7 + 2.3 * n_rows + 0.17 * (len(senses) // 5))
    about = {"word": word, "distance": "cosine", "points": _points(found, layers, planes)}
    return Report(title, columns, rows, about, draw, size)


def _draw_points(
    axes: Axes, points: Floats, shares: Floats, senses: Sequence[str], names: Sequence[str]
) -> None:
    for k, name in enumerate(names):
        mine = points[[sense == name for sense in senses]]
        axes.scatter(
            mine[:, 0],
            mine[:, 1],
            s=18,
            color=COLOURS[k % len(COLOURS)],
            # with more senses than colours, the same colour has another shape the next time
            marker=MARKERS[(k + k // len(COLOURS)) % len(MARKERS)],
            alpha=0.8,
            linewidths=0,
            label=short(name, 24) or "no sense",
        )
    if shares.any():
        axes.set_xlabel(f"PC 1 ({shares[0]:.0%})")
        axes.set_ylabel(f"PC 2 ({shares[1]:.0%})", labelpad=1)
    axes.set_aspect("equal", adjustable="datalim")  # as far apart as they are
    axes.set_xticks([])
    axes.set_yticks([])


def _points(
    found: Occurrences, layers: Sequence[str], planes: Sequence[tuple[Floats, Floats]]
) -> list[dict[str, Any]]:
    return [
        {
            "sense": example.sense,
            "sentence": example.sentence,
            "place": position + 1,
            **{
                name: [float(x) for x in points[i]]
                for name, (points, _) in zip(layers, planes, strict=True)
            },
        }
        for i, (example, position) in enumerate(zip(found.examples, found.positions, strict=True))
    ]


def _counts(senses: Sequence[str]) -> str:
    counts = Counter(senses)
    if set(counts) == {""}:
        return ""
    if len(counts) > 5:
        return f" ({len(counts)} senses)"
    return " (" + ", ".join(f"{name or 'no sense'} {n:,}" for name, n in counts.items()) + ")"
