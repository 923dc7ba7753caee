"""The result of an analysis: a table for the terminal, files with the numbers, and a picture."""

from __future__ import annotations

import contextlib
import csv
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.arguments import file_path
from elmokit.errors import OutputError
from elmokit.io.atomic import check_place, new_file
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import Displayed, Picture, Shown
from elmokit.text.scripts import UNSPACED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float | None


@dataclass(repr=False)
class Report(Displayed):
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
        notes: What the reader should know about the numbers, one sentence each.

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
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list, init=False)

    def shown(self) -> list[list[str]]:
        """Return the rows as printed."""
        return [[self._text(value) for value in row] for row in self.rows]

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.rows):,} rows)"

    def _shown(self) -> Shown:
        html = html_table(Table(self.shown(), self.columns, self.title, self.notes))
        return Shown(html, self.picture())

    def picture(self) -> Picture | None:
        """Return the picture as notebooks draw it, if there is one."""
        return None if self.draw is None else Picture(self.draw, self.size, self.title)

    def _text(self, value: Value) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            return "–" if math.isnan(value) else fixed(value, self.digits)
        return f"{value:,}" if isinstance(value, int) else value

    def write(self, stem: str | Path) -> list[Path]:
        """Write STEM.json and STEM.csv, and with a picture STEM.png and STEM.svg.

        Either all files are written, or none.

        Args:
            stem: Path without a suffix; a suffix .png, .svg, .json or .csv is removed.
        """
        stem = check_stem(file_path(stem, "stem").expanduser())
        written = []
        with contextlib.ExitStack() as new_files:  # renamed after the last one is complete
            for suffix, write in self._writers().items():
                written.append(stem.with_name(stem.name + suffix))
                write(new_files.enter_context(new_file(written[-1])))
        return written

    def _writers(self) -> dict[str, Callable[[Path], None]]:
        writers: dict[str, Callable[[Path], None]] = {".json": self._json, ".csv": self._csv}
        if self.draw is not None:
            from elmokit.io.figures import save_figure

            draw = self.draw

            def picture(path: Path) -> None:
                if missing := save_figure(draw, self.size, path, self.title):
                    self.warnings.append(_missing_characters(missing))

            writers |= {".png": picture, ".svg": picture}
        return writers

    def _json(self, path: Path) -> None:
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        notes = {"notes": self.notes} if self.notes else {}
        values = {"title": self.title, **notes, **self.about, "rows": rows}
        text = json.dumps(values, ensure_ascii=False, indent=1)
        # a path may hold bytes that are not UTF-8; their escapes are those of JSON
        path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    def _csv(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


class Reported(Displayed):
    """A result of an analysis: notebooks show its report."""

    @abstractmethod
    def report(self) -> Report:
        """Return the result as a table and a picture, to look at or to write to files."""

    def _shown(self) -> Shown:
        return self.report()._shown()


def numbered_layers(names: Sequence[str], n: int) -> list[str]:
    """Names of n layers: the given ones, or else numbers."""
    return list(names) if len(names) == n else [f"layer {k}" for k in range(n)]


def fixed(value: float, digits: int = 3) -> str:
    """A number with so many decimal places; a rounded zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


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


def _missing_characters(missing: str) -> str:
    """Explain the boxes in a picture."""
    some = missing[:10] + ("…" if len(missing) > 10 else "")
    advice = "install a font that has them"
    if UNSPACED.search(missing):
        advice = (
            "install a font, on Debian and Ubuntu with apt install fonts-noto-cjk, on Fedora with "
            "dnf install google-noto-sans-cjk-fonts (macOS and Windows have one)"
        )
    return f"no installed font has {some}, so the PNG shows boxes; {advice}; the SVG needs none"
