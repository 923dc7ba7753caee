"""Words and their tags from CoNLL files: a token a line, a blank line between sentences.

Read are CoNLL-U and CoNLL-X, whose lines begin with the token's number, and files without numbers,
as those of CoNLL-2003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError
from elmokit.io.lines import find_files, read_lines

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Columns of CoNLL-U, in order."""
NO_TAG = "_"
"""What stands in a column that says nothing about a word."""

_NUMBER = re.compile(r"\d+$")
_RANGE_OR_EMPTY = re.compile(
    r"\d+[-.]\d+$"
)  # 1-2 is spelled as one word, 1.1 is not spelled at all


@dataclass(frozen=True)
class TaggedWords:
    """A sentence and the tags of its words, None for a word without."""

    words: list[str]
    tags: list[str | None]


def read_conll(
    path: Path, column: str = "upos", word_column: int | None = None
) -> list[TaggedWords]:
    """The sentences of a file, or of all files of a folder.

    Args:
        path: Plain or packed files; a line that begins with # is a comment where lines begin with
            numbers, or where it has other columns than the first line.
        column: Which column has the tags: a name of :data:`CONLLU`, or a number from 1.
        word_column: Which has the words, from 1; None for the second where lines begin with
            numbers, else the first.
    """
    sentences = [s for file in find_files([path]) for s in _read_file(file, column, word_column)]
    if not sentences:
        raise InputError(f"there is no sentence in {path}; give a CoNLL file")
    if not any(tag for sentence in sentences for tag in sentence.tags):
        raise InputError(f"column {column} of {path} has no tag; choose another with --column")
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
                    f"line {number} of {path} has {len(cells)} columns, so that there is no column "
                    f"{layout.needed}; choose with --column and --word-column"
                )
            tag = cells[layout.tag]
            if not cells[layout.word]:
                raise InputError(
                    f"line {number} of {path} has no word; give it one, or take it out"
                )
            words.append(cells[layout.word])
            tags.append(None if tag == NO_TAG else tag)
        if words:
            yield TaggedWords(words, tags)


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Lines between blank ones, with their numbers."""
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
    """How a file's lines are made."""

    tabs: bool
    numbered: bool
    n_columns: int
    word: int
    """Column of the word, from 0…"""
    tag: int
    """…and that of the tag."""

    @classmethod
    def of(cls, lines: Sequence[str], column: str, word_column: int | None) -> _Layout:
        """The layout of a file by its first sentence, whose first line is no comment."""
        tabs = "\t" in lines[0]
        rows = [line.split("\t") if tabs else line.split() for line in lines]
        cells = rows[0]
        numbered = len(cells) > 1 and _count_up([r[0] for r in rows if not r[0].startswith("#")])
        if column.lower() in CONLLU and not numbered:
            raise InputError(
                f"{column} is a column of CoNLL-U, whose lines begin with numbers, not with "
                f"{cells[0]!r}; give --column a number from 1"
            )
        word = word_column if word_column is not None else 2 if numbered else 1
        return cls(tabs, numbered, len(cells), word - 1, column_number(column) - 1)

    @property
    def needed(self) -> int:
        return max(self.word, self.tag) + 1

    def cells(self, line: str) -> list[str]:
        return line.split("\t") if self.tabs else line.split()

    def skips(self, line: str) -> bool:
        """Whether a line has no word of its own."""
        cells = self.cells(line)
        if line.startswith("#"):  # which is a word, too
            return self.numbered or len(cells) != self.n_columns
        if self.numbered:
            return _RANGE_OR_EMPTY.match(cells[0]) is not None
        return cells[0] == "-DOCSTART-"


def _count_up(ids: Sequence[str]) -> bool:
    """Whether the first cells of a sentence's lines are the numbers of its words.

    A file without numbers may begin with a year, or any other number.
    """
    words = [word for word in ids if not _RANGE_OR_EMPTY.match(word)]
    return bool(words) and words == [str(number) for number in range(1, len(words) + 1)]


def column_number(column: str) -> int:
    """The number from 1 of a column given by name or number."""
    if column.lower() in CONLLU:
        return CONLLU.index(column.lower()) + 1
    if not _NUMBER.match(column) or int(column) < 1:
        raise InputError(
            f"there is no column {column!r}; give a number from 1, or a name of CoNLL-U: "
            f"{', '.join(CONLLU)}"
        )
    return int(column)
