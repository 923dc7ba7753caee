"""Words and their tags from CoNLL files: one token per line, a blank line between sentences.

Supports CoNLL-U and CoNLL-X, whose lines start with the token's number, and files without numbers
such as those of CoNLL-2003. Read by hand, because packages for CoNLL-U refuse the other two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError, shown
from elmokit.io.lines import find_files, read_lines

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Columns of CoNLL-U, in order."""
NO_TAG = "_"
"""Placeholder for a missing value."""

_NUMBER = re.compile(r"\d{1,9}$")
# 1-2 is a multiword token, 1.1 an empty node
_RANGE_OR_EMPTY = re.compile(r"\d+[-.]\d+$")


@dataclass(frozen=True)
class TaggedWords:
    """A sentence and the tags of its words; None for a word without a tag."""

    words: list[str]
    tags: list[str | None]


def read_conll(
    path: Path, column: str = "upos", word_column: int | None = None
) -> list[TaggedWords]:
    """Read the sentences of a file, or of all files in a folder.

    Args:
        path: A file or folder, compressed or not. A line starting with # is a comment if lines
            start with numbers, or if it does not have as many columns as the first line.
        column: Column with the tags: a name of :data:`CONLLU`, or a number from 1.
        word_column: Column with the words, from 1. The default is the second if lines start with
            numbers, and the first otherwise.
    """
    sentences = [s for file in find_files([path]) for s in _read_file(file, column, word_column)]
    if not sentences:
        raise InputError(f"no sentences found in {path}; expected a CoNLL file")
    if not any(tag for sentence in sentences for tag in sentence.tags):
        raise InputError(f"column {column} of {path} has no tags; choose another column=")
    return sentences


def _read_file(path: Path, column: str, word_column: int | None) -> Iterator[TaggedWords]:
    layout: _Layout | None = None
    for block in _blocks(path):
        if layout is None:
            while block and block[0][1].startswith("#"):
                del block[0]
            if not block:
                continue
            layout = _Layout.of([line for _, line in block], column, word_column)
        words: list[str] = []
        tags: list[str | None] = []
        for number, line in block:
            if layout.skips(line):
                continue
            cells = layout.cells(line)
            if len(cells) < layout.needed:
                raise InputError(
                    f"line {number} of {path} has {len(cells)} columns; expected at least "
                    f"{layout.needed}; choose others with column= and word_column="
                )
            tag = cells[layout.tag]
            if not cells[layout.word]:
                raise InputError(
                    f"line {number} of {path} has an empty word; fix or remove the line"
                )
            words.append(cells[layout.word])
            tags.append(None if tag == NO_TAG else tag)
        if words:
            yield TaggedWords(words, tags)


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Groups of lines between blank lines, with line numbers."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


@dataclass(frozen=True)
class _Layout:
    """The columns of a file."""

    tabs: bool
    numbered: bool
    n_columns: int
    word: int
    """Column of the word, from 0."""
    tag: int
    """Column of the tag, from 0."""

    @classmethod
    def of(cls, lines: Sequence[str], column: str, word_column: int | None) -> _Layout:
        """Detect the layout from a file's first sentence, whose first line is not a comment."""
        tabs = "\t" in lines[0]
        rows = [line.split("\t") if tabs else line.split() for line in lines]
        cells = rows[0]
        numbered = len(cells) > 1 and _count_up([r[0] for r in rows if not r[0].startswith("#")])
        if column.lower() in CONLLU and not numbered:
            raise InputError(
                f"{column} is a column of CoNLL-U, whose lines start with numbers, but the first "
                f"line starts with {shown(cells[0])}; pass column= as a number from 1"
            )
        word = word_column if word_column is not None else 2 if numbered else 1
        return cls(tabs, numbered, len(cells), word - 1, column_number(column) - 1)

    @property
    def needed(self) -> int:
        return max(self.word, self.tag) + 1

    def cells(self, line: str) -> list[str]:
        return line.split("\t") if self.tabs else line.split()

    def skips(self, line: str) -> bool:
        """Return whether a line has no word of its own."""
        cells = self.cells(line)
        if line.startswith("#"):  # may also be a word
            return self.numbered or len(cells) != self.n_columns
        if self.numbered:
            return _RANGE_OR_EMPTY.match(cells[0]) is not None
        return cells[0] == "-DOCSTART-"


def _count_up(ids: Sequence[str]) -> bool:
    """Return whether the first cells of a sentence's lines number its words.

    A file without numbers may start with a year, or any other number.
    """
    words = [word for word in ids if not _RANGE_OR_EMPTY.match(word)]
    return bool(words) and words == [str(number) for number in range(1, len(words) + 1)]


def column_number(column: str) -> int:
    """Convert a column's name or number to its number from 1."""
    if column.lower() in CONLLU:
        return CONLLU.index(column.lower()) + 1
    if not _NUMBER.match(column) or int(column) < 1:
        raise InputError(
            f"unknown column {shown(column)}; expected a number from 1, or a name of CoNLL-U: "
            f"{', '.join(CONLLU)}"
        )
    return int(column)
