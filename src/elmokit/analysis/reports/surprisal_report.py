"""Surprisal of a sentence's tokens: a table, and bars by direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from elmokit.analysis.reports.report import Report, Value, fixed
from elmokit.analysis.surprisal import Floats, Surprisal
from elmokit.io.figures import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_IN_A_ROW = 20  # most tokens in a row of the picture
_MOST = 200  # most tokens in the picture


def surprisal_report(found: Surprisal) -> Report:
    """Tabulate the surprisal of every token, and draw it as bars.

    Args:
        found: The surprisal of a sentence.
    """
    rows: list[list[Value]] = [
        [token, *(float(bits[i]) for bits in found.bits.values()), "" if known else "<UNK>"]
        for i, (token, known) in enumerate(zip(found.tokens, found.known, strict=True))
    ]
    means = {name: float(bits.mean()) for name, bits in found.bits.items()}
    title = f"Surprisal in bits (mean {fixed(list(means.values())[-1], 2)})"
    n = min(_MOST, len(found.tokens))
    n_rows = math.ceil(n / _IN_A_ROW)
    in_a_row = math.ceil(n / n_rows)  # rows of about equal length
    size = (max(3.4, 0.8 + 0.33 * in_a_row), 0.6 + 1.6 * n_rows)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(n_rows, 1, sharey=True, squeeze=False)[:, 0]
        for k, axes in enumerate(panels):
            _draw_bars(axes, found, range(k * in_a_row, min(n, (k + 1) * in_a_row)))
            axes.set_xlim(-0.6, max(4, in_a_row) - 0.4)
            axes.set_ylabel("surprisal (bits)")
        notes = [] if all(found.known[:n]) else ["* not in the vocabulary"]
        if n < len(found.tokens):
            notes.append(f"the first {n} of {len(found.tokens):,} tokens")
        panels[0].set_title("; ".join(notes), loc="right", fontsize=7)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)

    columns = ["token", *found.bits, "scored as"]
    unknown = found.known.count(False)
    notes = [
        f"tokens outside the model's vocabulary, scored as <UNK>: {unknown:,} of "
        f"{len(found.tokens):,}"
    ]
    notes = notes if unknown else []
    return Report(title, columns, rows, {"means": means}, draw, size, digits=2, notes=notes)


def _draw_bars(axes: Any, found: Surprisal, here: range) -> None:
    places = np.arange(len(here))
    bars = [name for name in found.bits if name != "mean"]
    width = 0.8 / len(bars)
    for k, name in enumerate(bars):
        values = _finite(found.bits[name], here)
        shifted = places + (k - (len(bars) - 1) / 2) * width
        axes.bar(shifted, values, width, color=COLOURS[k], label=name)
    if "mean" in found.bits:
        values = _finite(found.bits["mean"], here)
        axes.plot(places, values, "_", color="black", markersize=9, label="mean")
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, [short(found.label(i)) for i in here], **slanted)
    axes.tick_params(axis="x", length=0)


def _finite(values: Floats, here: range) -> Floats:
    """The values of some tokens; infinite ones are NaN, which is not drawn."""
    some = values[here.start : here.stop]
    return np.where(np.isfinite(some), some, np.nan)
