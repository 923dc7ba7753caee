"""Text with marked spans: brackets, colours, HTML."""

import random
from html.parser import HTMLParser

from elmokit.tasks.marked_text import COLOURS, Mark, MarkedText, html_page

WORDS = "the bank of the river".split()
NESTED = MarkedText(WORDS, [Mark(3, 5, "2", 1), Mark(0, 5, "1", 0)])


class Reader(HTMLParser):
    """Collects the text, and checks that tags are nested."""

    def __init__(self):
        super().__init__()
        self.inside, self.text, self.marks = [], "", 0

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.inside.append(tag)
        self.marks += tag == "mark"

    def handle_endtag(self, tag):
        assert self.inside.pop() == tag

    def handle_data(self, data):
        if "p" in self.inside and "small" not in self.inside:
            self.text += data


def test_brackets_are_nested():
    assert NESTED.plain() == "[the bank of [the river 2] 1]"


def test_a_piece_has_the_colour_of_the_innermost_mark():
    groups = {piece.text: piece.group for piece in NESTED.pieces()}
    assert groups["bank"] == 0
    assert groups["river"] == 1
    assert [p.group for p in MarkedText(["a"], []).pieces()] == [None]


def test_a_title_comes_first():
    text = MarkedText(["in", "Paris"], [Mark(1, 2, "", 0)], "Where?")
    assert text.plain() == "Where? in [Paris]"
    assert text.html().startswith("<h2>Where?</h2>")


def test_html_is_escaped_and_nested():
    rng = random.Random(0)
    texts = []
    for _ in range(50):
        n = rng.randrange(1, 12)
        words = [rng.choice(["<b>", "a&b", '"', "词", "x"]) for _ in range(n)]
        marks = []
        while len(marks) < 4:
            a, b = sorted(rng.sample(range(n + 1), 2))
            marks.append(Mark(a, b, "<L>", rng.randrange(20)))
            if any(x.start < a < x.end < b or a < x.start < b < x.end for x in marks):
                marks.pop()
                break
        texts.append(MarkedText(words, marks))
    reader = Reader()
    page = "".join(html_page(texts, "a < b"))
    reader.feed(page)
    reader.close()
    assert reader.inside == []
    assert reader.text == "".join(" ".join(text.words) for text in texts)
    assert reader.marks == sum(len(text.marks) for text in texts)
    assert all(colour in page for colour in COLOURS)
