"""Semantic change: a table of words, and dots with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from elmokit.analysis.change import LEAST, ROUNDS, Estimate, WordChange
from elmokit.analysis.phrases import notes_on_longer
from elmokit.analysis.reports.report import Report, Value
from elmokit.io.figures import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 40  # words in a picture


def change_report(changes: Sequence[WordChange], names: tuple[str, str] = ("old", "new")) -> Report:
    """Tabulate the words, and draw those that are not too rare.

    Args:
        changes: The words in order.
        names: Names of the two texts.
    """
    rows: list[list[Value]] = [
        [c.word, c.n_old, c.n_new, *_values(c.prt), c.chance, *_values(c.apd)] for c in changes
    ]
    shown = [c for c in changes if c.prt][:_SHOWN]
    rare = [c.word for c in changes if not c.prt]
    title = f"Semantic change from {names[0]} to {names[1]}"
    if rare:
        title += f"; fewer than {LEAST} occurrences in one of them: {', '.join(rare)}"

    def draw(figure: Figure) -> None:
        _draw(figure, shown)

    return Report(
        title,
        [
            *("word", "n old", "n new"),
            *("PRT", "PRT low", "PRT high", "PRT chance"),
            *("APD", "APD low", "APD high"),
        ],
        rows,
        {
            "min_occurrences": LEAST,
            "too_rare": rare,
            "uncorrected_prt": {c.word: c.plain_prt for c in changes if c.prt},
            "resamples": ROUNDS,
            "confidence": 0.95,
        },
        draw if shown else None,
        size=(3.4, 1.1 + 0.2 * len(shown)),
        notes=[note for c in changes for note in notes_on_longer(c.word, c.longer)],
    )


def _values(estimate: Estimate | None) -> list[Value]:
    return [None] * 3 if estimate is None else [estimate.value, estimate.low, estimate.high]


def _draw(figure: Figure, changes: Sequence[WordChange]) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(changes))
    _dots(left, [c.prt for c in changes if c.prt], COLOURS[0], "o")
    _dots(right, [c.apd for c in changes if c.apd], COLOURS[1], "s")
    left.scatter(
        [c.chance for c in changes], places, marker="|", color=COLOURS[6], label="chance level"
    )
    left.set_xlabel("PRT (95% CI)")
    right.set_xlabel("APD (95% CI)")
    left.set_yticks(places, [short(c.word, 24) for c in changes])
    left.set_ylim(len(changes) - 0.5, -0.5)
    left.set_xlim(left=-0.03 * left.get_xlim()[1])  # room for half a dot at 0
    # above the panel that has the mark
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)


def _dots(axes: Axes, estimates: Sequence[Estimate], colour: str, marker: str) -> None:
    """Values with their intervals, from top to bottom."""
    values = np.array([e.value for e in estimates])
    reach = np.array([[max(0.0, e.value - e.low), max(0.0, e.high - e.value)] for e in estimates])
    axes.errorbar(
        values, np.arange(len(values)), xerr=reach.T, fmt=marker, color=colour, ms=4, capsize=2
    )
