"""Installed fonts that have the characters a picture needs.

Matplotlib falls back from one font family to the next, glyph by glyph, but only among families that
it is given. Names alone do not tell which family has a character: systems differ, and so do
versions of a font. So the fonts themselves are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

# asked first: readable in small sizes, simplified Chinese before other forms of the characters
_PREFERRED = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans GB", "Heiti SC",
    "Microsoft YaHei", "SimHei", "Noto Sans CJK", "Noto Sans", "Source Han Sans", "Hiragino",
    "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip
_PLACEHOLDERS = "Last Resort"  # a family that draws a box for every character

Font = tuple[str, str, int]
"""Family, file, and number of the face in the file."""


@cache
def families_with(characters: frozenset[str]) -> list[str]:
    """Return as few font families as possible that together have the characters.

    Characters that no installed font has are ignored.

    Args:
        characters: Some characters.
    """
    missing = {ord(character) for character in characters}
    chosen: list[str] = []
    for fonts in (_known_fonts, _new_fonts):  # the second only if needed: it takes longer
        missing = _choose(_sorted(fonts()), missing, chosen)
    return chosen


def _choose(fonts: Sequence[Font], missing: set[int], chosen: list[str]) -> set[int]:
    """Add families to those chosen, the best first; return the characters still missing."""
    while missing:
        best, most = "", set[int]()
        for family, file, face in fonts:
            has = _covered(file, face, missing)
            if len(has) > len(most):
                best, most = family, has
            if len(has) == len(missing):
                break
        if not most:
            break
        chosen.append(best)
        missing = missing - most
    return missing


def _covered(file: str, face: int, codes: Iterable[int]) -> set[int]:
    font = _open(file, face)
    return set() if font is None else {code for code in codes if font.get_char_index(code)}


@cache
def _open(file: str, face: int) -> Any:
    """Open a font; None if it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        # older matplotlibs know only the first face of a collection
        return FT2Font(file, face_index=face) if face else FT2Font(file)
    except (OSError, RuntimeError):
        return None


def _sorted(fonts: Iterable[Font]) -> list[Font]:
    """One font per family, without placeholders, preferred families first."""
    families: dict[str, Font] = {}
    for font in sorted(fonts):
        if not font[0].startswith(_PLACEHOLDERS):
            families.setdefault(font[0], font)

    def rank(font: Font) -> int:
        return next((i for i, name in enumerate(_PREFERRED) if font[0].startswith(name)), 99)

    return sorted(families.values(), key=rank)


def _known_fonts() -> list[Font]:
    """Fonts in matplotlib's list."""
    from matplotlib.font_manager import fontManager

    return [(font.name, font.fname, getattr(font, "index", 0)) for font in fontManager.ttflist]


def _new_fonts() -> list[Font]:
    """Fonts that were installed after matplotlib made its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {font.fname for font in fontManager.ttflist}
    n = len(fontManager.ttflist)
    for file in findSystemFonts():
        if file not in known:
            try:
                fontManager.addfont(file)
            except Exception:  # damaged fonts raise many kinds, and matplotlib skips them too
                continue
    return [(f.name, f.fname, getattr(f, "index", 0)) for f in fontManager.ttflist[n:]]
