"""How objects show themselves in a notebook: as HTML with a picture, and shortly as text.

Front ends choose one form of an output, usually HTML. So the HTML contains the picture too. The
picture alone is for those that show no HTML, such as a notebook as PDF.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from elmokit.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PIXELS = 96  # of an inch on a page


class Picture(NamedTuple):
    """How to draw a picture; see :func:`elmokit.io.figures.save_figure`."""

    draw: Callable[[Figure], None]
    size: tuple[float, float]
    title: str


class Shown(NamedTuple):
    """What a notebook shows of an object."""

    html: str
    picture: Picture | None = None


class Displayed(ABC):
    """Shows itself in notebooks. A subclass says how."""

    @abstractmethod
    def _shown(self) -> Shown:
        """Return HTML, and the picture below it."""

    def _repr_html_(self) -> str:
        html, picture = self._shown()
        # the HTML has the title already
        png = None if picture is None else _png(picture._replace(title=""))
        if picture is None or png is None:
            return html
        width, alt = round(picture.size[0] * _PIXELS), escape(picture.title)
        source = f"data:image/png;base64,{b64encode(png).decode()}"
        style = "max-width: 100%; height: auto;"
        return f'{html}\n<img src="{source}" alt="{alt}" width="{width}" style="{style}">'

    def _repr_png_(self) -> bytes | None:
        picture = self._shown().picture
        return None if picture is None else _png(picture)


def _png(picture: Picture) -> bytes | None:
    """Draw a picture; None without matplotlib, because a table is still worth showing."""
    from elmokit.io.figures import figure_png

    try:
        return figure_png(*picture)
    except MissingExtraError:
        return None


class BriefRepr:
    """A dataclass whose ``repr`` is one line: long values are shortened, arrays are shapes."""

    def __repr__(self) -> str:
        names = [field.name for field in fields(self) if field.repr]  # type: ignore[arg-type]
        shown = (f"{name}={_BRIEF.repr(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(shown)})"


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.maxlist = self.maxtuple = self.maxdict = 3
        self.maxstring = self.maxother = 40

    def repr_list(self, values: list[Any], level: int) -> str:
        if values and is_dataclass(values[0]):
            return f"<{len(values)} {type(values[0]).__name__}>"
        return super().repr_list(values, level)

    def repr_ndarray(self, array: Any, level: int) -> str:
        return f"<array {array.shape}>"


_BRIEF = _Brief()
