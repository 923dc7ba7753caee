"""Linear probes: a table, and bars of accuracy and control accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from elmokit.analysis.probes.probing import ProbeResult, ProbeScore
from elmokit.analysis.reports.report import Report, Value
from elmokit.io.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIX, ALL, BASELINE = "learned mix", "all layers", "most frequent tag per word"
"""Rows of the table after the layers."""


def probe_report(result: ProbeResult, layer_names: Sequence[str]) -> Report:
    """Tabulate accuracy, control accuracy and selectivity of every probe.

    Args:
        result: The scores.
        layer_names: Names of the layers, the token layer first.
    """
    named = dict(zip(layer_names, result.layers, strict=True))
    named |= {MIX: result.mix, ALL: result.side_by_side, BASELINE: result.word_list}
    rows: list[list[Value]] = [[n, s.accuracy, s.control, s.selectivity] for n, s in named.items()]

    def draw(figure: Figure) -> None:
        _draw(figure, named)

    return Report(
        f"Linear probes: accuracy (%), {len(result.tags)} tags, {result.n_train:,} training and "
        f"{result.n_dev:,} test tokens",
        ["features", "accuracy", "control accuracy", "selectivity"],
        rows,
        {
            "train_tokens": result.n_train,
            "dev_tokens": result.n_dev,
            "unseen_words": result.unseen,
            "mix_weights": result.shares,
            "tags": result.tags,
        },
        draw,
        size=(3.4, 0.6 + 0.42 * len(rows)),
        digits=2,
    )


def _draw(figure: Figure, scores: dict[str, ProbeScore]) -> None:
    axes = figure.subplots()
    places = np.arange(len(scores))
    kinds = (
        ("accuracy", [s.accuracy for s in scores.values()], COLOURS[0], -0.2),
        ("control accuracy", [s.control for s in scores.values()], COLOURS[7], 0.2),
    )
    for label, values, colour, shift in kinds:
        bars = axes.barh(places + shift, values, 0.4, color=colour, label=label)
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axes.set_yticks(places, list(scores))
    axes.invert_yaxis()
    axes.set_xlim(0, 115)  # room for the numbers
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("accuracy (%)")
    figure.legend(loc="outside lower center", ncols=2)
