"""Text with marked spans: entities, roles, answers, clusters. In brackets, in colours, as HTML."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from elmokit.io.notebook import Displayed, Shown

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7f3c8d", "#666666")
"""Colours of groups, easy to tell apart with any colour vision; they repeat."""

_PAGE = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/2.1 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ font-size: 1rem; margin: 1rem 0 0; }}
p {{ margin: 0 0 1rem; overflow-wrap: anywhere; }}
mark {{ color: inherit; border-bottom: 2px solid; border-radius: .2em; padding: .1em .15em; }}
mark small {{ font-weight: bold; margin-left: .3em; }}
{colours}
</style>
</head>
<body>
{body}
</body>
</html>
"""


class Mark(NamedTuple):
    """A marked span of words."""

    start: int
    end: int
    """The word after the last one."""
    label: str
    group: int
    """Marks of the same group have the same colour."""


class Piece(NamedTuple):
    """A piece of text with the group of the innermost mark around it."""

    text: str
    group: int | None


@dataclass(frozen=True)
class MarkedText(Displayed):
    """Words, and marks that are nested or apart."""

    words: Sequence[str]
    marks: Sequence[Mark]
    title: str = ""
    """Printed before the text, such as a question."""
    between: str = " "
    """Printed between two words."""

    def pieces(self) -> Iterator[Piece]:
        """Yield the text with marks in brackets, as [Angela Merkel PER]."""
        groups: list[int | None] = [None]
        for event, mark, word in self._events():
            if event == "open" and mark is not None:
                groups.append(mark.group)
                yield Piece("[", mark.group)
            elif event == "close" and mark is not None:
                yield Piece(f" {mark.label}]" if mark.label else "]", groups.pop())
            else:
                yield Piece(word, groups[-1])

    def plain(self) -> str:
        """Return the text with marks in brackets, after the title."""
        text = "".join(piece.text for piece in self.pieces())
        return f"{self.title} {text}" if self.title else text

    def html(self, styled: bool = False) -> str:
        """Return a paragraph of HTML.

        Args:
            styled: Whether styles are inside the elements; otherwise a page has them.
        """
        parts = []
        for event, mark, word in self._events():
            if event == "open" and mark is not None:
                number = mark.group % len(COLOURS)
                look = f'style="{_mark_style(number)}"' if styled else f'class="c{number}"'
                parts.append(f"<mark {look}>")
            elif event == "close" and mark is not None:
                small = '<small style="font-weight: bold; margin-left: .3em;">'
                small = small if styled else "<small>"
                label = f"{small}{escape(mark.label)}</small>" if mark.label else ""
                parts.append(f"{label}</mark>")
            else:
                parts.append(escape(word))
        head = "b" if styled else "h2"
        title = f"<{head}>{escape(self.title)}</{head}>\n" if self.title else ""
        return f'{title}<p dir="auto">{"".join(parts)}</p>'

    def _shown(self) -> Shown:
        return Shown(self.html(styled=True))

    def _events(self) -> Iterator[tuple[str, Mark | None, str]]:
        """Yield marks that open and close, words, and the spaces between words."""
        starts: dict[int, list[Mark]] = {}
        for mark in sorted(self.marks, key=lambda mark: -mark.end):  # the longest first
            starts.setdefault(mark.start, []).append(mark)
        inside: list[Mark] = []
        for place, word in enumerate(self.words):
            while inside and inside[-1].end <= place:
                yield "close", inside.pop(), ""
            if place:
                yield "word", None, self.between
            for mark in starts.get(place, ()):
                inside.append(mark)
                yield "open", mark, ""
            yield "word", None, word
        while inside:
            yield "close", inside.pop(), ""


class Marked(Displayed):
    """A prediction that is text with marked spans."""

    @abstractmethod
    def marked(self, kinds: Sequence[str] = ()) -> list[MarkedText]:
        """Return the text with its marks.

        Args:
            kinds: All kinds of marks, whose order decides the colours; none for the order in which
                they occur here.
        """

    def _shown(self) -> Shown:
        return Shown("\n".join(text.html(styled=True) for text in self.marked()))


def _mark_style(number: int) -> str:
    colour = COLOURS[number]
    return (
        f"color: inherit; background: {colour}26; border-bottom: 2px solid {colour}; "
        "border-radius: .2em; padding: .1em .15em;"
    )


def html_page(texts: Iterable[MarkedText], title: str) -> Iterator[str]:
    """Yield a page of HTML in pieces."""
    colours = "\n".join(
        f".c{k} {{ background: {colour}26; border-color: {colour}; }} .c{k} > small "
        f"{{ color: {colour}; }}"
        for k, colour in enumerate(COLOURS)
    )
    head, tail = _PAGE.format(title=escape(title), colours=colours, body="\0").split("\0")
    yield head
    for text in texts:
        yield text.html() + "\n"
    yield tail
