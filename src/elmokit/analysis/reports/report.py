"""The result of an analysis: a table for the terminal, files with the numbers, and a picture."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.errors import OutputError
from elmokit.io.atomic import check_place, new_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float | None


@dataclass
class Report:
    """A table, and how to draw it.

    Args:
        title: One line; heads the picture too.
        columns: Names; the first column names the rows.
        rows: Values of each row, numbers unformatted.
        about: Settings, sizes, texts and the like, as plain values for JSON.
        draw: Draws the picture into an empty figure; None for no picture.
        size: Width and height of the picture in inches, without the title; a paper's column is
            about 3.4 wide.
        digits: Decimal places in the terminal.

    Attributes:
        warnings: Problems with the files written, one sentence each.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    about: dict[str, Any] = field(default_factory=dict)
    draw: Callable[[Figure], None] | None = None
    size: tuple[float, float] = (3.4, 2.6)
    digits: int = 3
    warnings: list[str] = field(default_factory=list, init=False)

    def shown(self) -> list[list[str]]:
        """Return the rows as printed."""
        return [[self._text(value) for value in row] for row in self.rows]

    def _text(self, value: Value) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            return "–" if math.isnan(value) else f"{value:.{self.digits}f}"
        return f"{value:,}" if isinstance(value, int) else value

    def write(self, stem: Path) -> list[Path]:
        """Write STEM.json and STEM.csv, and with a picture STEM.png and STEM.svg.

        Each file is written atomically.

        Args:
            stem: Path without a suffix; a suffix .png, .svg, .json or .csv is removed.
        """
        stem = check_stem(stem)
        written = []
        for suffix, write in self._writers().items():
            target = stem.with_name(stem.name + suffix)
            with new_file(target) as new:
                write(new)
            written.append(target)
        return written

    def _writers(self) -> dict[str, Callable[[Path], None]]:
        writers: dict[str, Callable[[Path], None]] = {".json": self._json, ".csv": self._csv}
        if self.draw is not None:
            from elmokit.io.figures import save_figure

            draw = self.draw

            def picture(path: Path) -> None:
                if not save_figure(draw, self.size, path, self.title):
                    self.warnings.append(
                        "no installed font has all characters of the picture, so the PNG shows "
                        "boxes; install one, such as fonts-noto-cjk for Chinese (the SVG needs "
                        "none)"
                    )

            writers |= {".png": picture, ".svg": picture}
        return writers

    def _json(self, path: Path) -> None:
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        values = {"title": self.title, **self.about, "rows": rows}
        text = json.dumps(values, ensure_ascii=False, indent=1)
        path.write_text(text + "\n", encoding="utf-8")

    def _csv(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


def check_stem(stem: Path) -> Path:
    """Return the path without a suffix; an error if nothing can be written there."""
    if stem.suffix in (".png", ".svg", ".json", ".csv"):
        stem = stem.with_suffix("")
    if stem.is_dir():
        raise OutputError(f"{stem} is a folder; expected the start of file names, such as {stem}/x")
    check_place(stem)
    return stem


def _plain(value: Value) -> Value:
    """JSON has no NaN or infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
