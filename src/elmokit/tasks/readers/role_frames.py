"""Sentences with the semantic roles of their predicates, from CoNLL files and JSONL.

Columns are those of CoNLL-2005, CoNLL-2012 and PropBank: one says which words are predicates, and
each predicate has a column of its own with its roles, in the order of the predicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.arguments import described
from elmokit.errors import InputError, shown
from elmokit.io.conll import numbered_blocks
from elmokit.io.lines import find_files, shown_path
from elmokit.tasks.measures.tag_schemes import OUTSIDE
from elmokit.tasks.readers.chosen_columns import numbered_columns
from elmokit.tasks.readers.examples import PREDICATE, Frame, RoleExample
from elmokit.tasks.readers.records import Source, json_records, table_kind

_NONE = ("-", "_")  # the mark of words that are no predicates
_CELL = re.compile(r"(?:\(([^()*]+))?\*([^()*]*\))?$")  # a role begins, a role ends
_ONTONOTES = 11  # columns of CoNLL-2012 before those of the predicates; one more follows these
_WORDS, _FRAMES = ("words", "tokens"), "frames"


def read_role_examples(
    path: str | Path, columns: Mapping[str, str] | None = None, *, labelled: bool = True
) -> list[RoleExample]:
    """Read sentences and the frames of their predicates.

    Args:
        path: A JSONL file with ``words`` and ``frames``, or a CoNLL file: a word per line, and a
            blank line after each sentence. After a column that is - for words that are no
            predicates, each predicate has a column of roles, such as ``(ARG0* * *)`` or IOB2 tags.
        columns: Where words and predicates are, such as ``{"word": "4", "predicate": "8"}``, from
            1; needed only if they are not found.
        labelled: Whether roles are needed. Without, those in the file are ignored, but predicates
            that it marks are kept.
    """
    chosen = numbered_columns(columns, ("word", "predicate"), {"word": "1", "predicate": "2"})
    given = {name: number - 1 for name, number in chosen.items()}
    found: list[RoleExample] = []
    if not Path(path).is_dir() and table_kind(Path(path)) == "jsonl":
        if given:
            raise InputError("columns= is for CoNLL files; JSONL has the keys words and frames")
        found = list(_from_json(Source(path), labelled))
    else:
        for file in find_files([path]):
            found += _from_conll(file, given, labelled)
    if not found:
        raise InputError(
            f"no sentences found in {shown_path(path)}; expected one word per line, or JSONL"
        )
    return found


# CoNLL


class _Sentence(NamedTuple):
    lines: list[int]
    rows: list[list[str]]

    def column(self, place: int) -> list[str]:
        return [row[place] for row in self.rows]

    def marked(self, place: int) -> list[int]:
        """Words that are predicates by this column."""
        return [i for i, row in enumerate(self.rows) if row[place] not in _NONE]

    @property
    def width(self) -> int:
        return len(self.rows[0])


class _Places(NamedTuple):
    """The columns of a file, from 0."""

    word: int
    predicate: int | None
    """None if no column marks predicates."""
    first: int
    """The column of the first predicate."""
    after: int
    """The number of columns after those of the predicates."""


def _from_conll(path: Path, given: dict[str, int], labelled: bool) -> Iterator[RoleExample]:
    name = shown_path(path)
    sentences = list(_sentences(path, name))
    if not sentences:
        return
    places = _find(sentences, given, labelled, name)
    for sentence in sentences:
        yield _example(sentence, places, labelled, name)


def _sentences(path: Path, name: str) -> Iterator[_Sentence]:
    tabs: bool | None = None
    for block in numbered_blocks(path):
        tabs = "\t" in block[0][1] if tabs is None else tabs
        cells = [(n, line.split("\t") if tabs else line.split()) for n, line in block]
        width = next((len(row) for _, row in cells if not row[0].startswith("#")), None)
        if width is None:  # only comments, except for the word # between tabs
            cells = [(n, row) for n, row in cells if tabs and row[0] == "#" and len(row) > 1]
            width = len(cells[0][1]) if cells else 0
        # a line of another width that begins with # is a comment; of this width, a word
        kept = [(n, row) for n, row in cells if len(row) == width or not row[0].startswith("#")]
        for number, row in kept:
            if len(row) != width:
                raise InputError(
                    f"line {number} of {name} has {_columns(len(row))}, but the sentence begins "
                    f"with {width}; expected as many in all lines of a sentence"
                )
        if kept:
            yield _Sentence([n for n, _ in kept], [row for _, row in kept])


def _columns(n: int) -> str:
    return "1 column" if n == 1 else f"{n} columns"


def _find(
    sentences: Sequence[_Sentence], given: dict[str, int], labelled: bool, name: str
) -> _Places:
    """Find the columns: a sentence has one column of roles for each of its predicates."""
    documents = all(_counts_from(s, 2, 0) for s in sentences)  # CoNLL-2012 and PropBank
    numbered = not documents and all(_counts_from(s, 0, 1) for s in sentences)
    word = given.get("word", 3 if documents else 1 if numbered else 0)
    narrowest = min(sentences, key=lambda s: s.width)
    if max(given.values(), default=word) >= narrowest.width or word >= narrowest.width:
        raise InputError(
            f"line {narrowest.lines[0]} of {name} has {_columns(narrowest.width)}; fix the line, "
            "or choose other columns"
        )
    if documents and "predicate" not in given:
        ontonotes = _Places(word, 7, _ONTONOTES, 1)
        if narrowest.width > _ONTONOTES and all(_fits(s, ontonotes) for s in sentences):
            return ontonotes
    candidates = range(word + 1, narrowest.width)
    for place in [given["predicate"]] if "predicate" in given else reversed(candidates):
        found = _Places(word, place, place + 1, 0)
        wrong_one = next((s for s in sentences if not _fits(s, found)), None)
        if wrong_one is None:
            return found
        if "predicate" in given:
            n, roles = len(wrong_one.marked(place)), wrong_one.width - place - 1
            if not labelled and not roles:  # predicates without roles
                return found
            raise InputError(
                f"the sentence at line {wrong_one.lines[0]} of {name} has {n} predicates in "
                f"column {place + 1}, and {_columns(roles)} after it; expected as many of both"
            )
    if not labelled and all(s.width == word + 2 for s in sentences):
        cells = (row for s in sentences for row in s.rows if row[word] not in _NONE)
        marks = [row[word + 1] in _NONE for row in cells]
        if len(marks) / 2 <= sum(marks) < len(marks):  # most words are no predicates
            return _Places(word, word + 1, word + 2, 0)
    if labelled:
        raise InputError(
            f"{name} has no column of predicates, which is - for all other words, followed by one "
            "column of roles for each of them; choose the column with "
            'columns={"word": "1", "predicate": "2"}'
        )
    return _Places(word, None, 0, 0)


def _fits(sentence: _Sentence, places: _Places) -> bool:
    assert places.predicate is not None
    n = sentence.width - places.first - places.after
    return n == len(sentence.marked(places.predicate))


def _counts_from(sentence: _Sentence, place: int, first: int) -> bool:
    """Whether a column has the numbers of the words."""
    if sentence.width <= place + 1:
        return False
    return sentence.column(place) == [str(first + i) for i in range(len(sentence.rows))]


def _example(sentence: _Sentence, places: _Places, labelled: bool, name: str) -> RoleExample:
    words = sentence.column(places.word)
    if not all(words):
        line = sentence.lines[words.index("")]
        raise InputError(f"line {line} of {name} has an empty word; fix or remove the line")
    if places.predicate is None:
        return RoleExample(words, None)
    frames = []
    for k, marked in enumerate(sentence.marked(places.predicate)):
        tags = None
        if places.first + k + places.after < sentence.width:
            tags = _tags(sentence, places.first + k, name)
            # PropBank marks the last word of some predicates of several words
            marked = next((i for i, tag in enumerate(tags) if tag == f"B-{PREDICATE}"), marked)
        frames.append(Frame(marked, tags if labelled else None))
    try:
        return RoleExample(words, frames)
    except InputError as error:
        raise InputError(f"sentence at line {sentence.lines[0]} of {name}: {error}") from None


def _tags(sentence: _Sentence, place: int, name: str) -> list[str]:
    """The IOB2 tags of a predicate, from spans such as ``(ARG0* * *)``, or from tags."""
    column = sentence.column(place)
    if not any("*" in cell for cell in column):
        return column
    tags, role = [], None
    for line, cell in zip(sentence.lines, column, strict=True):
        if cell == "*":
            tags.append(f"I-{role}" if role else OUTSIDE)
            continue
        match = _CELL.match(cell)
        if (
            match is None
            or (match[1] and role is not None)
            or (match[2] and not (match[1] or role))
        ):
            raise InputError(
                f"line {line} of {name} has {shown(cell)} in column {place + 1}; expected *, or "
                "the beginning or the end of a role, such as (ARG0*, *) or (V*), without roles "
                "inside each other"
            )
        role = match[1] or role
        tags.append(f"{'B' if match[1] else 'I'}-{role}" if role else OUTSIDE)
        role = None if match[2] else role
    if role is not None:
        raise InputError(
            f"the role {role} in column {place + 1} of {name} does not end in the sentence at "
            f"line {sentence.lines[0]}; write *) in the line of its last word"
        )
    return tags


# JSONL


def _from_json(source: Source, labelled: bool) -> Iterator[RoleExample]:
    for line, values in json_records(source):
        key = next((key for key in _WORDS if key in values), None)
        if key is None:
            raise source.error(line, 'has no "words"; add the list of its words')
        words = values[key]
        if not isinstance(words, list) or not words or not all(map(_is_word, words)):
            raise source.error(
                line, f"has {described(words)} as its {key}; expected a list of words"
            )
        frames = values.get(_FRAMES)
        if frames is None:
            if labelled:
                raise source.error(line, 'has no "frames"; add a list, which may be empty')
            yield RoleExample(words, None)
            continue
        if not isinstance(frames, list):
            raise source.error(line, f"has {described(frames)} as its frames; expected a list")
        try:
            found = [_frame(i, f, labelled) for i, f in enumerate(frames, 1)]
            _check_distinct(found)
            yield RoleExample(words, found)
        except InputError as error:
            raise InputError(f"line {line} of {source.name}: {error}") from None


def _check_distinct(frames: Sequence[Frame]) -> None:
    """Raise if a word is the predicate of two frames, as it is in a sentence of PropBank."""
    first: dict[int, int] = {}
    for number, frame in enumerate(frames, 1):
        if (other := first.setdefault(frame.predicate, number)) != number:
            raise InputError(
                f"frames {other} and {number} have the same predicate, word {frame.predicate}; "
                "expected one frame for each predicate"
            )


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and bool(word.strip())


def _frame(number: int, values: Any, labelled: bool) -> Frame:
    predicate = values.get("predicate") if isinstance(values, dict) else None
    if not isinstance(predicate, int) or isinstance(predicate, bool):
        raise InputError(
            f'frame {number} has no whole number as its "predicate"; expected an object such as '
            '{"predicate": 1, "tags": ["B-ARG0", "B-V"]}'
        )
    if not labelled:
        return Frame(predicate)
    tags = values.get("tags")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"frame {number} has {described(tags)} as its tags; expected a list")
    return Frame(predicate, tags)
