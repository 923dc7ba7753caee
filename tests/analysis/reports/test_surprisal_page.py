"""A sentence coloured by surprisal, and its page."""

import math
import re
from html.parser import HTMLParser

import numpy as np

from elmokit.analysis.reports.surprisal_page import COLOURS, NAMES, STEPS, page, step
from elmokit.analysis.surprisal import Surprisal


def test_steps():
    assert [step(bits) for bits in (0, 1.9, 2, 5, 13.9, 14, 99, math.inf)] == [
        0, 0, 1, 2, 4, 5, 5, 5
    ]  # fmt: skip
    assert len(NAMES) == len(COLOURS) == len(STEPS) + 1
    assert [int(n) for n in re.findall(r"\d+", " ".join(NAMES))] == [
        2, 2, 4, 4, 7, 7, 10, 10, 14, 14
    ]  # fmt: skip


def test_letters_can_be_read():
    def light(colour):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [
            0.2126, 0.7152, 0.0722
        ]  # fmt: skip

    for ground, letters in COLOURS:  # WCAG's contrast
        a, b = sorted([light(ground), light(letters)])
        assert (b + 0.05) / (a + 0.05) > 4.5
    assert sorted(COLOURS, key=lambda c: -light(c[0])) == list(COLOURS)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.titles, self.words = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.titles += [value for name, value in attributes if name == "title"]

    def handle_data(self, data):
        self.words.append(data)


def test_page():
    bits = {"forward": np.array([1.0, 3]), "backward": np.array([3.0, 20])}
    bits["mean"] = np.array([2.0, 11.5])
    evil = '"><script>alert(1)</script>&amp;'
    found = Surprisal([evil, "河"], [False, True], bits)
    html = page(found)
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.tags
    assert tags.titles[0] == f"{evil}*: forward 1.00, backward 3.00, mean 2.00 bits"
    assert evil + "*" in tags.words
    assert "河" in tags.words
    assert "color-scheme" in html
    assert not re.search(r"https?:|src=|href=", html)  # it needs nothing else
    assert html.count('class="c5"') == 2  # the legend, and the backward 河
    assert "not in the vocabulary" in html
    assert "not in the vocabulary" not in page(Surprisal(["a", "b"], [True, True], bits))
