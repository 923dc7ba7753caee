"""What notebooks show: HTML that is escaped, a picture if matplotlib is there, short reprs."""

import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from elmokit.io.html_table import Table, facts, html_table
from elmokit.io.notebook import BriefRepr, Displayed, Picture, Shown


class Circle(Displayed):
    def _shown(self):
        return Shown("<p>circle</p>", Picture(self._draw, (2, 1), 'a "round" <thing>'))

    def _draw(self, figure):
        figure.subplots().plot([1, 2], [3, 4])


def test_everything_is_escaped():
    nasty = "<script>alert('&')</script>"
    html = html_table(Table([[nasty, nasty]], [nasty, "b"], nasty, [nasty]))
    assert "<script>" not in html
    assert html.count("&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;") == 5


def test_numbers_are_on_the_right():
    rows = [["7", "1,234.50", "word"], ["8", "–", "12"], ["9", "", "-3%"]]
    html = html_table(Table(rows, ["a", "b", "c"]))
    lines = [line for line in html.splitlines() if line.startswith("<tr>")]
    assert len(lines) == 4
    for line in lines:
        aligned = [part.split(";")[0] for part in line.split("text-align: ")[1:]]
        assert aligned == ["left", "right", "left"]


def test_long_and_empty_tables():
    html = html_table(Table([[str(k)] for k in range(1000)], ["n"]))
    assert html.count("<tr>") == 51
    assert "the first 50 of 1,000 rows" in html
    assert html_table(Table([])).count("<tr>") == 0


def test_facts():
    html = html_table(facts("Model", {"size": 12345, "fast": True, "name": "a<b"}))
    for part in ("<b>Model</b>", ">12,345<", ">True<", ">a&lt;b<"):
        assert part in html


def test_the_picture_is_in_the_html_and_alone():
    pytest.importorskip("matplotlib")
    circle = Circle()
    assert circle._repr_png_().startswith(b"\x89PNG")
    html = circle._repr_html_()
    assert html.startswith("<p>circle</p>")
    assert '<img src="data:image/png;base64,iVBOR' in html
    assert 'alt="a &quot;round&quot; &lt;thing&gt;" width="192"' in html
    assert circle._repr_html_() == html  # the same bytes every time


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert Circle()._repr_png_() is None
    assert Circle()._repr_html_() == "<p>circle</p>"


def test_short_reprs():
    @dataclass(repr=False)
    class Part(BriefRepr):
        name: str

    @dataclass(repr=False)
    class Result(BriefRepr):
        words: list[str]
        parts: list[Part]
        vectors: np.ndarray
        hidden: str = field(default="x", repr=False)

    result = Result(["a"] * 1000, [Part("x")] * 20, np.zeros((5, 7)))
    assert repr(result) == (
        "Result(words=['a', 'a', 'a', ...], parts=<20 Part>, vectors=<array (5, 7)>)"
    )
