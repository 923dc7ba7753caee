"""Geometry of the layers: a table of measures, and four of them as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from elmokit.analysis.geometry import LEAST_CONTEXTS, NAMES, PUBLISHED, Geometry, GeometryResult
from elmokit.analysis.reports.report import Report, Value
from elmokit.io.figures import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = {
    "anisotropy": "anisotropy",
    "self_similarity_adjusted": "self-similarity,\nadjusted",
    "intra_sentence_adjusted": "intra-sentence similarity,\nadjusted",
    "static_share_adjusted": "maximum explainable\nvariance, adjusted",
}


def geometry_report(result: GeometryResult) -> Report:
    """Tabulate the measures by layer, beside ELMo's published ones for a model of equal depth.

    Args:
        result: The measures.
    """
    published = PUBLISHED if len(result.layers) == len(PUBLISHED) else ()
    columns = [f"layer {number}" for number in range(len(result.layers))]
    columns += [f"ELMo {number}" for number in range(len(published))]
    shown = [*result.layers, *published]
    rows: list[list[Value]] = [
        [name, *values] for name, *values in zip(NAMES, *map(astuple, shown), strict=True)
    ]

    def draw(figure: Figure) -> None:
        _draw(figure, result.layers, published)

    return Report(
        f"Geometry of {result.n_tokens:,} vectors in {result.n_sentences:,} sentences; "
        f"{result.n_words:,} words in {LEAST_CONTEXTS} or more sentences"
        + ("; ELMo: published figures" if published else ""),
        ["measure", *columns],
        rows,
        {
            "tokens": result.n_tokens,
            "sentences": result.n_sentences,
            "words": result.n_words,
            "min_contexts": LEAST_CONTEXTS,
            "ELMo": "Ethayarajh (2019), the original ELMo on sentences of STS 2012-2016; "
            "means over the tables at github.com/kawine/contextual",
        },
        draw,
        size=(3.4, 3.6),
    )


def _draw(figure: Figure, layers: Sequence[Geometry], published: Sequence[Geometry]) -> None:
    lines = [("this model", layers, "-"), ("ELMo, published", published, "--")]
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (field, title) in zip(panels.flat, _PANELS.items(), strict=True):
        for number, (label, measured, style) in enumerate(lines[: 2 if published else 1]):
            axes.plot(
                range(len(measured)),
                [getattr(layer, field) for layer in measured],
                style,
                color=COLOURS[number],
                marker=MARKERS[number],
                markersize=4,
                label=label,
                clip_on=False,
            )
        axes.set_title(title)
        axes.set_xticks(range(len(layers)))
    low, high = axes.get_ylim()
    axes.set_ylim(min(0, low), max(1, high))
    for axes in panels[1]:
        axes.set_xlabel("layer")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
