"""Word sense disambiguation: F1 by layer and method, as a table and as dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.senses.disambiguation import WsdScores
from elmokit.io.figures import COLOURS, MARKERS, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def wsd_report(scores: dict[str, WsdScores], layers: Sequence[str]) -> Report:
    """Tabulate F1 on several datasets, by layer and method, beside the first-sense baseline.

    Args:
        scores: Scores by name of the dataset.
        layers: Names of the layers, the token layer first.
    """
    methods = ["first sense", *layers, "mix", "top without residual", "context"]
    if all(score.all_hints is not None for score in scores.values()):
        methods.append("combined")
    rows: list[list[Value]] = []
    for name, score in scores.items():
        single = [score.first, *score.layers, score.mix, score.alone, score.around]
        values = [*single, score.all_hints][: len(methods)]
        rows.append([name, score.n, 100 * score.seen, *values])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = np.arange(len(rows))
        for k, method in enumerate(methods):
            axes.plot(
                [float(row[3 + k] or 0) for row in rows],
                places,
                linestyle="",
                marker=MARKERS[(k + k // len(MARKERS)) % len(MARKERS)],
                color=COLOURS[(k - 1) % len(COLOURS)],
                markersize=5,
                label=method,
            )
        axes.set_yticks(places, [short(str(row[0]), 24) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="x", linewidth=0.4)
        axes.set_xlabel("F1 (%)")
        figure.legend(loc="outside lower center", ncols=3)

    return Report(
        "Word sense disambiguation: F1 (%)",
        ["dataset", "words", "seen (%)", *methods],
        rows,
        draw=draw,
        size=(5.0, 1.3 + 0.25 * len(rows)),
        digits=1,
    )
