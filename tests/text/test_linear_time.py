"""Splitting text takes time proportional to its length, for any text."""

import time

import pytest

from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import TOKENIZERS

# each makes a text of about n characters that a careless expression would read again and again
TEXTS = {
    "full stops": lambda n: "a" + "." * n + " b",
    "full stops and spaces": lambda n: ("." * 1000 + " " * 1000) * (n // 2000) + "b",
    "marks and quotes": lambda n: "a." + '"' * n + " b",
    "opening brackets": lambda n: "a. " + "(" * n + "b",
    "pairs of opening quotes": lambda n: "a. " + ' "' * (n // 2) + "b",
    "spaces": lambda n: "a." + " " * n + "b",
    "Chinese full stops": lambda n: "今" + "。" * n,
    "Chinese characters": lambda n: "今天天气很好" * (n // 6),
    "one character": lambda n: "的" * n,
    "numbers": lambda n: "1." * (n // 2) + "x",
    "times": lambda n: "1:" * (n // 2) + "1x",
    "digits": lambda n: "1" * n + "x",
    "letters": lambda n: "n" * n + "'",
    "contractions": lambda n: "n'ta" * (n // 4),
    "abbreviations": lambda n: "Mr." * (n // 3),
    "initials": lambda n: ("A." + " " * 1000) * (n // 1000),
    "hyphens": lambda n: "a-" * (n // 2),
    "accents": lambda n: "a" + "\u0301" * n,
    "addresses": lambda n: ("www." + "'" * 1000) * (n // 1000),
    "mail": lambda n: "a@" + "b-" * (n // 2),
    "emoji": lambda n: "👩\u200d" * (n // 2),
}


def seconds(function, text):
    """CPU time of the fastest of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        function(text)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    "function", [split_sentences, *TOKENIZERS.values()], ids=["sentences", *TOKENIZERS]
)
def test_time_is_linear(function, name):
    """Four times the text takes four times as long; in quadratic time it would take 16 times."""
    make, n = TEXTS[name], 8_000
    few = seconds(function, make(n))
    # a time below a clock's resolution, or spent on setting up, says nothing about growth
    assert seconds(function, make(4 * n)) < 10 * few + 0.05
