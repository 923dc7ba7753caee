"""Perplexity by band: a table, and one line per direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from elmokit.analysis.perplexity_bands import BandedPerplexity, Bands
from elmokit.analysis.reports.report import Report, Value
from elmokit.io.figures import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bands_report(found: BandedPerplexity) -> Report:
    """Tabulate the perplexity of every band with its number of tokens.

    Args:
        found: Losses by band.
    """
    groups = {
        "position": found.positions,
        "frequency rank": found.ranks,
        "total": found.whole,
    }
    rows = [[group, *values] for group, bands in groups.items() for values in _rows(bands)]
    rows += [["total", *values] for values in _rows(found.whole.together())]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        _draw_bands(left, found.positions, "position in the sentence")
        _draw_bands(right, found.ranks, "frequency rank")
        left.set_ylabel("perplexity")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)

    columns = ["group", "band", "tokens", "forward", "backward", "mean"]
    return Report(
        "Perplexity by position and by word frequency",
        columns,
        rows,
        {},
        draw,
        (6.8, 3.0),
        digits=1,
    )


def _rows(bands: Bands) -> list[list[Value]]:
    """Name, tokens, and forward, backward and mean perplexity of each band."""
    forward, *backward, mean = bands.perplexities().tolist()
    missing = [[math.nan] * len(bands.names)]  # a forward-only model
    return [
        [name, int(n), *values]
        for name, n, *values in zip(
            bands.names, bands.counts, forward, *(backward or missing), mean, strict=True
        )
    ]


def _draw_bands(axes: Any, bands: Bands, title: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    places = np.arange(len(bands.names))
    joined = len(places) - ("unknown" in bands.names)  # unknown words have no rank to join
    perplexities = bands.perplexities()[:-1]
    for k, (name, values) in enumerate(zip(("forward", "backward"), perplexities, strict=False)):
        shown = np.where(np.isfinite(values), values, np.nan)
        beside = places + 0.12 * (k - 0.5)  # keeps equal values apart
        axes.plot(beside, shown, MARKERS[k], color=COLOURS[k], markersize=4, label=name)
        axes.plot(beside[:joined], shown[:joined], color=COLOURS[k], linewidth=1)
    labels = [f"{name} ({int(n):,})" for name, n in zip(bands.names, bands.counts, strict=True)]
    slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, labels, **slanted)
    axes.set_xlim(-0.5, len(places) - 0.5)  # the same width even if only one band has tokens
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.set_xlabel(f"{title} (number of tokens)")
