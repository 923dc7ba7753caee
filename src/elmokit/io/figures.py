"""The look of pictures: sized for a paper's column, safe for the colour-blind, in any script."""

from __future__ import annotations

import re
import textwrap
import unicodedata
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.errors import MissingExtraError
from elmokit.io.fonts import families_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""The palette of Okabe and Ito, which is safe for the colour-blind."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers to go with the colours, for print in black and white."""

_FILE_DPI, _PAGE_DPI = 200, 120  # for print, and for a page with many pictures
_TITLE_LINE = 0.16  # inches
_MISSING = re.compile(r"Glyph (\d+) .*missing from")  # matplotlib's warning


def save_figure(
    draw: Callable[[Figure], None], size: tuple[float, float], path: Path, title: str = ""
) -> str:
    """Draw a figure into a file; the suffix chooses the format.

    Args:
        draw: Draws into an empty figure.
        size: Width and height in inches, without the title.
        path: The file.
        title: Heads the figure, in up to three lines.

    Returns:
        The characters that no installed font has and that are drawn as boxes; none in an SVG file,
        which leaves fonts to the viewer.
    """
    is_svg = path.suffix == ".svg"

    def save(figure: Figure) -> None:
        figure.savefig(path, dpi=_FILE_DPI, metadata={"Date": None} if is_svg else None)

    missing = _in_all_fonts(draw, size, title, save)
    return "" if is_svg else "".join(sorted(missing))


def figure_png(draw: Callable[[Figure], None], size: tuple[float, float], title: str = "") -> bytes:
    """Draw a figure as the bytes of a PNG file, for a page; arguments as in :func:`save_figure`."""
    file = BytesIO()

    def save(figure: Figure) -> None:
        file.seek(0)
        file.truncate()
        # without matplotlib's version: equal pictures give equal bytes
        figure.savefig(file, format="png", dpi=_PAGE_DPI, metadata={"Software": None})

    _in_all_fonts(draw, size, title, save)
    return file.getvalue()


def _in_all_fonts(
    draw: Callable[[Figure], None],
    size: tuple[float, float],
    title: str,
    save: Callable[[Figure], None],
) -> frozenset[str]:
    """Draw a figure, and again with more fonts if the usual one lacks characters.

    Returns:
        The characters that no font has.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "Pictures") from None
    missing = _draw(draw, size, title, save, [])
    if missing and (families := families_with(missing)):
        missing = _draw(draw, size, title, save, families)
    return missing


def _draw(
    draw: Callable[[Figure], None],
    size: tuple[float, float],
    title: str,
    save: Callable[[Figure], None],
    families: list[str],
) -> frozenset[str]:
    """Draw a figure with the usual font and some more; return the characters they do not have."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "font.family": ["DejaVu Sans", *families],
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "text.parse_math": False,  # a word with dollar signs is not a formula
        "svg.hashsalt": "elmokit",  # equal pictures give equal files
        "svg.fonttype": "none",  # text stays text, in the viewer's font
    }
    with rc_context(style), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        lines = _lines(title, size[0])
        figure = Figure((size[0], size[1] + _TITLE_LINE * len(lines)), layout="constrained")
        draw(figure)
        if lines:
            figure.suptitle("\n".join(lines), fontsize=9)
        save(figure)
    found = (_MISSING.match(str(warning.message)) for warning in warned)
    return frozenset(chr(int(match[1])) for match in found if match)


def short(token: str, n: int = 16) -> str:
    """Shorten a token to at most n characters, for a label."""
    return token if len(token) <= n else token[: n - 1] + "…"


def _lines(title: str, inches: float) -> list[str]:
    """Break a title into lines that fit; a Chinese character takes the room of two letters."""
    wide = any(unicodedata.east_asian_width(c) in "WF" for c in title)
    return textwrap.wrap(title, int(inches * (7 if wide else 14.5)), max_lines=3, placeholder=" …")
