"""Passages as a network reads them: words with their places, sentences, windows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from elmokit.errors import InputError, shown
from elmokit.tasks.readers.examples import QuestionExample
from elmokit.tasks.readers.questions import occurrences
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import Span, Tokenizer

PIECES = 4
"""A sentence has at most this part of a window; two windows share at least as many words."""


@dataclass(frozen=True)
class Passage:
    """The words of a passage, or of a window of it."""

    sentences: tuple[tuple[str, ...], ...]
    places: tuple[Span, ...]
    """Characters (start, end) of each word in the whole passage."""
    answers: tuple[Span, ...] = ()
    """First and last words of the right answers."""


def split_passage(text: str, tokenizer: Tokenizer, most: int) -> Passage:
    """Split a passage into sentences and words.

    Args:
        text: The passage.
        tokenizer: Splits sentences.
        most: Most words of a sentence; a longer one is cut.
    """
    sentences: list[tuple[str, ...]] = []
    places: list[Span] = []
    begin = 0
    for sentence in split_sentences(text):
        begin = text.index(sentence, begin)
        spans = [span for span in tokenizer.spans(sentence) if sentence[slice(*span)].strip()]
        words = [sentence[start:end] for start, end in spans]
        places += [(begin + start, begin + end) for start, end in spans]
        sentences += [tuple(words[i : i + most]) for i in range(0, len(words), most)]
        begin += len(sentence)
    if not places:
        raise InputError(f"the tokenizer finds no word in the passage {shown(text)}; write some")
    return Passage(tuple(sentences), tuple(places))


def windows(passage: Passage, most: int) -> Iterator[Passage]:
    """Yield the windows of a passage: whole sentences, up to so many words.

    Neighbours share a quarter of a window or more, so each answer of as many words is completely
    inside one of them. A longer answer is cut to this length, unless one window is enough.

    Args:
        passage: Its sentences have at most a quarter of the words of a window.
        most: Most words of a window.
    """
    if len(passage.places) <= most:
        yield passage
        return
    shared = most // PIECES
    answers = [(a, min(b, a + shared - 1)) for a, b in passage.answers]
    ends = list(accumulate(map(len, passage.sentences), initial=0))
    first, last = 0, 0
    while last < len(passage.sentences):
        last = bisect_right(ends, ends[first] + most) - 1
        start, end = ends[first], ends[last]
        inside = tuple((a - start, b - start) for a, b in answers if start <= a and b < end)
        yield Passage(passage.sentences[first:last], passage.places[start:end], inside)
        first = bisect_right(ends, end - shared) - 1


def answer_words(example: QuestionExample, passage: Passage, every: bool) -> tuple[Span, ...]:
    """Return the first and the last word of each right answer.

    Args:
        example: With answers.
        passage: Its words.
        every: Whether every occurrence of an answer is right, and not only the one that is given.
    """
    found: dict[Span, None] = {}
    for answer in example.answers or ():
        text = answer if isinstance(answer, str) else answer.text
        if isinstance(answer, str) or every:
            starts = occurrences(text, example.passage)
            # "art" is an answer, but not in "start"
            edges = {a for a, _ in passage.places}, {b for _, b in passage.places}
            whole = [s for s in starts if s in edges[0] and s + len(text) in edges[1]]
            starts = whole or starts
        else:
            starts = [answer.start]
        for start in starts:
            found[_words(passage.places, start, start + len(text))] = None
    known = tuple(span for span in found if span[0] <= span[1])
    if example.answers and not known:
        raise InputError(
            f"the tokenizer finds no word in the answer {shown(example.answer_texts[0])}; expected "
            "one or more words"
        )
    return known


def _words(places: Sequence[Span], start: int, end: int) -> Span:
    """First and last of the words that overlap some characters; last < first if there are none."""
    first = bisect_right(places, start, key=lambda place: place[1])
    last = bisect_left(places, end, key=lambda place: place[0]) - 1
    return first, last
