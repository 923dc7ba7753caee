"""Which words of a text look at which words of another: a table and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Reported, Value
from elmokit.io.figures import short
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import BriefRepr, Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELL = 0.24  # inches
_PANEL = 9.0  # most inches; longer texts get smaller cells


@dataclass(frozen=True, repr=False)
class WordAttention(BriefRepr, Reported):
    """The attention of each word of a hypothesis to the words of its premise."""

    premise: list[str]
    """T words."""
    hypothesis: list[str]
    """U words."""
    weights: npt.NDArray[np.float32]
    """Shares (U, T); those of each word of the hypothesis add up to 1."""
    title: str = ""
    """Heads the picture, such as the prediction."""

    def report(self) -> Report:
        """Return all shares as a table and a heat map."""
        rows: list[list[Value]] = [
            [word, i + 1, other, j + 1, float(self.weights[i, j])]
            for i, word in enumerate(self.hypothesis)
            for j, other in enumerate(self.premise)
        ]
        columns = ["hypothesis", "position", "premise", "premise position", "share"]
        width, height = (
            max(1.2, min(_PANEL, len(words) * _CELL)) for words in (self.premise, self.hypothesis)
        )

        def draw(figure: Figure) -> None:
            axes = figure.subplots()
            image = axes.imshow(self.weights, "Blues", aspect="auto", vmin=0, vmax=1)
            axes.tick_params(length=0)
            some = _labelled(self.premise, width)
            axes.set_xticks(some, [short(self.premise[i]) for i in some], rotation=90)
            some = _labelled(self.hypothesis, height)
            axes.set_yticks(some, [short(self.hypothesis[i]) for i in some])
            axes.set_xlabel("premise")
            axes.set_ylabel("hypothesis")
            figure.colorbar(image, ax=axes, label="share of attention")

        about = {"premise": self.premise, "hypothesis": self.hypothesis}
        return Report(self.title, columns, rows, about, draw, (width + 2.2, height + 1.2))

    def _shown(self) -> Shown:
        report = self.report()  # has more rows than anyone reads; the picture shows them
        most = [
            [word, self.premise[int(row.argmax())], f"{row.max():.2f}"]
            for word, row in zip(self.hypothesis, self.weights, strict=True)
        ]
        columns = ["hypothesis", "looks most at", "share"]
        return Shown(html_table(Table(most, columns, self.title)), report.picture())

    def write(self, stem: str | Path) -> list[Path]:
        """Write STEM.json, STEM.csv, STEM.png and STEM.svg; needs the extra ``plots``."""
        return self.report().write(stem)


def _labelled(words: list[str], inches: float) -> range:
    """Return the words whose labels fit side by side."""
    return range(0, len(words), max(1, math.ceil(0.14 * len(words) / inches)))
