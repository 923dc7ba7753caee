"""The look of pictures: sized for a paper's column, safe for the colour-blind, with Chinese."""

from __future__ import annotations

import textwrap
import unicodedata
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""The palette of Okabe and Ito, which is safe for the colour-blind."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers to go with the colours, for print in black and white."""

_CJK = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB",
    "Heiti SC", "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip
_TITLE_LINE = 0.16  # inches


def save_figure(
    draw: Callable[[Figure], None], size: tuple[float, float], path: Path, title: str = ""
) -> bool:
    """Draw a figure into a file; the suffix chooses the format.

    Args:
        draw: Draws into an empty figure.
        size: Width and height in inches, without the title.
        path: The file.
        title: Heads the figure, in up to three lines.

    Returns:
        Whether the installed fonts have all characters.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "Pictures") from None
    style: dict[Any, Any] = {
        "font.family": ["DejaVu Sans", *_cjk_fonts()],
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
        when = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=200, metadata=when)
    return path.suffix == ".svg" or not any("missing from" in str(w.message) for w in warned)


def short(token: str, n: int = 16) -> str:
    """Shorten a token to at most n characters, for a label."""
    return token if len(token) <= n else token[: n - 1] + "…"


def _lines(title: str, inches: float) -> list[str]:
    """Break a title into lines that fit; a Chinese character takes the room of two letters."""
    wide = any(unicodedata.east_asian_width(c) in "WF" for c in title)
    return textwrap.wrap(title, int(inches * (7 if wide else 14.5)), max_lines=3, placeholder=" …")


@cache
def _cjk_fonts() -> list[str]:
    """Installed fonts with Chinese characters."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [name for name in _CJK if name in installed]
