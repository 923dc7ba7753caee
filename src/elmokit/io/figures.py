"""How pictures look: readable in a column of a paper, for the colour-blind, in Chinese too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's, which the colour-blind can tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Beside the colours, for print in black and white."""

_CJK = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB",
    "Heiti SC", "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip


def save_figure(draw: Callable[[Figure], None], size: tuple[float, float], path: Path) -> bool:
    """Draw a figure of so many inches into a file, whose suffix chooses the format.

    Returns:
        Whether this machine's fonts had all characters.
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
        "text.parse_math": False,  # words with dollar signs are words, not formulas
        "svg.hashsalt": "elmokit",  # the same picture is the same file
        "svg.fonttype": "none",  # text stays text, in whatever font the reader has
    }
    with rc_context(style), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        when = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=200, metadata=when)
    return path.suffix == ".svg" or not any("missing from" in str(w.message) for w in warned)


def short(token: str, n: int = 16) -> str:
    """A token as a label: its beginning where it is long."""
    return token if len(token) <= n else token[: n - 1] + "…"


@cache
def _cjk_fonts() -> list[str]:
    """Fonts with Chinese characters that this machine has."""
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return [name for name in _CJK if name in there]
