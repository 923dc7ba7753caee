"""Texts with two marked entities and the relation between them.

The entities are marked as in SemEval-2010 Task 8: ``The <e1>cat</e1> caught a <e2>mouse</e2>.``
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from elmokit.arguments import instance
from elmokit.errors import InputError, shortened, shown
from elmokit.tasks.readers.examples import RelationExample
from elmokit.tasks.readers.labelled_texts import COLUMNS
from elmokit.tasks.readers.records import Source
from elmokit.tasks.readers.rows import read_rows
from elmokit.text.tokenizers import Span, Tokenizer

_MARK = re.compile(r"</?e[12]>")
_ORDERS = (["<e1>", "</e1>", "<e2>", "</e2>"], ["<e2>", "</e2>", "<e1>", "</e1>"])
_NUMBERED = re.compile(r"\d+\t(.*)$")  # a sentence of SemEval
_COMMENT = "Comment:"


def read_relation_examples(
    path: str | Path, columns: Mapping[str, str] | None = None, *, labelled: bool = True
) -> list[RelationExample]:
    """Read texts with two entities.

    Args:
        path: A file of SemEval-2010 Task 8, or a TSV, CSV or JSONL file with the columns text and
            label. Entities are marked ``<e1>…</e1>`` and ``<e2>…</e2>``.
        columns: Where the columns are, such as ``{"label": "1", "text": "3"}``: names in the first
            line, or numbers from 1.
        labelled: Whether each text needs a label. Without, a file that is neither has one marked
            text per line.
    """
    source = Source(path)
    if columns or source.kind:
        return _from_rows(source, columns, labelled)
    if _NUMBERED.match(source.first):
        return _from_semeval(source, labelled)
    if labelled or "\t" in source.first:
        return _from_rows(source, columns, labelled)
    found = [
        parse_marked(line, name=f"line {number} of {source.name}")
        for number, line in source.lines
        if line.strip()
    ]
    if not found:
        raise source.nothing("one text per line")
    return found


def parse_marked(text: str, label: str | None = None, name: str = "the text") -> RelationExample:
    """Find the two entities of a text, and remove their marks.

    Args:
        text: With ``<e1>…</e1>`` and ``<e2>…</e2>``, once each.
        label: The relation.
        name: What an error calls the text.
    """
    text = instance(text, "text", str, "a string").strip()
    marks = [match[0] for match in _MARK.finditer(text)]
    if marks not in _ORDERS:
        raise InputError(
            f"{name} has {shortened(' '.join(marks)) or 'no marks'}; expected <e1>…</e1> and "
            "<e2>…</e2>, once each and not inside each other"
        )
    plain = ""
    places: dict[str, Span] = {}
    pieces = _MARK.split(text)
    for before, mark in zip(pieces, [*marks, ""], strict=True):
        if mark.startswith("</"):
            entity = before.strip()
            start = len(plain) + len(before) - len(before.lstrip())
            if not entity:
                raise InputError(f"{name} has nothing between <{mark[2:]} and {mark}; mark a word")
            places[mark] = (start, start + len(entity))
        plain += before
    return RelationExample(plain, places["</e1>"], places["</e2>"], label)


def relation_words(example: RelationExample, tokenizer: Tokenizer) -> tuple[list[str], Span, Span]:
    """Split the text of an example into words.

    Returns:
        The words, and the words (start, end) of both entities. A token that contains the edge of an
        entity is split there.
    """
    text = example.text
    edges = sorted({*example.first, *example.second})
    spans: list[Span] = []
    for start, end in tokenizer.spans(text):
        cuts = [start, *(edge for edge in edges if start < edge < end), end]
        spans += [(a, b) for a, b in pairwise(cuts) if text[a:b].strip()]
    words = [text[a:b].strip() for a, b in spans]
    return words, _words_of(spans, example.first, text), _words_of(spans, example.second, text)


def _words_of(spans: list[Span], place: Span, text: str) -> Span:
    inside = [i for i, (a, b) in enumerate(spans) if place[0] <= a and b <= place[1]]
    if not inside:
        raise InputError(
            f"the tokenizer finds no word in the entity {shown(text[place[0] : place[1]])}; mark "
            "one or more words"
        )
    return inside[0], inside[-1] + 1


def _from_rows(
    source: Source, columns: Mapping[str, str] | None, labelled: bool
) -> list[RelationExample]:
    found = []
    for row in read_rows(source, COLUMNS, columns, labelled):
        text = row.text("text")
        if not isinstance(text, str):
            raise row.error("has a list as its text; expected a string with marks")
        label = row.label("label", labelled)
        found.append(parse_marked(text, label, f"line {row.line} of {source.name}"))
    return found


def _from_semeval(source: Source, labelled: bool) -> list[RelationExample]:
    """Read numbered sentences, each followed by its relation and a comment, or by nothing."""
    found: list[RelationExample] = []
    sentence: tuple[int, str] | None = None
    relation: str | None = None

    def add() -> None:
        if sentence is None:
            return
        number, text = sentence
        if relation is None and labelled:
            raise source.error(number, "is followed by no relation; write it on the next line")
        found.append(parse_marked(text, relation, f"line {number} of {source.name}"))

    for number, line in source.lines:
        line = line.strip()
        if match := _NUMBERED.match(line):
            add()
            sentence, relation = (number, _unquoted(match[1].strip())), None
        elif not line or (line.startswith(_COMMENT) and sentence is not None):
            continue
        elif sentence is not None and relation is None and not _MARK.search(line):
            relation = line
        else:
            raise source.error(
                number,
                f"is {shown(line)}; expected a number, a tab and a sentence in quotation marks, "
                "then its relation on a line",
            )
    add()
    if not found:
        raise source.nothing("numbered sentences, each followed by its relation")
    return found


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
