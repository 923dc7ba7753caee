"""Words and their tags from CoNLL files: one token per line, a blank line between sentences.

Supports CoNLL-U and CoNLL-X, whose lines start with the token's number, and files without numbers
such as those of CoNLL-2003. Read by hand, because packages for CoNLL-U refuse the other two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from elmokit.errors import InputError, shown
from elmokit.io.lines import find_files, numbered_lines, shown_path

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Columns of CoNLL-U, in order."""
NO_TAG = "_"
"""Placeholder for a missing value."""

_BEGINNING = 100  # sentences to choose a column by
_NUMBER = re.compile(r"\d{1,9}$")
# 1-2 is a multiword token, 1.1 an empty node
_RANGE_OR_EMPTY = re.compile(r"\d+[-.]\d+$")


@dataclass(frozen=True)
class TaggedWords:
    """A sentence and the tags of its words; None for a word without a tag."""

    words: list[str]
    tags: list[str | None]


@dataclass(frozen=True)
class Columns:
    """The first lines of a file, for choosing a column of tags."""

    rows: list[list[str]]
    """Cells of each line that has a word; some lines may have fewer."""
    numbered: bool
    """Whether lines start with the numbers of the words."""
    word: int
    """Column of the words, from 1."""


ColumnChoice = Callable[[Columns], int | None]
"""Returns the number of the column with the tags, from 1; None for a file without tags."""


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
    files = find_files([path])
    sentences = [s for file in files for s in read_conll_file(file, column, word_column)]
    if not sentences:
        raise InputError(f"no sentences found in {path}; expected a CoNLL file")
    if not any(tag for sentence in sentences for tag in sentence.tags):
        raise InputError(f"column {column} of {path} has no tags; choose another column=")
    return sentences


def read_conll_file(
    path: Path,
    column: str | ColumnChoice,
    word_column: int | None = None,
    complete: bool = False,
    pattern: re.Pattern[str] | None = None,
) -> Iterator[TaggedWords]:
    """Yield the sentences of a file; see :func:`read_conll`.

    Args:
        path: The file.
        column: Column with the tags, or a function that chooses it.
        word_column: Column with the words.
        complete: Whether a word without a tag is an error.
        pattern: What each tag has to match; None for any.
    """
    blocks, name = numbered_blocks(path), shown_path(path)
    beginning = list(islice(blocks, _BEGINNING))
    if not beginning:
        return
    rows = [line for block in beginning for _, line in block]
    layout = _Layout.of([line for _, line in beginning[0]], rows, column, word_column)
    for block in chain(beginning, blocks):
        words: list[str] = []
        tags: list[str | None] = []
        for number, line in block:
            if layout.skips(line):
                continue
            cells = layout.cells(line)
            if len(cells) < layout.needed:
                raise InputError(
                    f"line {number} of {name} has {_columns(len(cells))}; expected at least "
                    f"{layout.needed}; fix the line, or choose other columns"
                )
            word = cells[layout.word]
            tag = NO_TAG if layout.tag is None else cells[layout.tag]
            if not word:
                raise InputError(
                    f"line {number} of {name} has an empty word; fix or remove the line"
                )
            if complete and tag in ("", NO_TAG):
                raise InputError(
                    f"line {number} of {name} has no tag for {shown(word)}; write one in column "
                    f"{(layout.tag or 0) + 1}, or choose another column"
                )
            if pattern is not None and not pattern.fullmatch(tag):
                raise InputError(
                    f"line {number} of {name} has the tag {shown(tag)} in column "
                    f"{(layout.tag or 0) + 1}; expected O, or B, I and the like, with a type as in "
                    "B-PER; fix the line, or choose another column"
                )
            words.append(word)
            tags.append(None if tag == NO_TAG else tag)
        if words:
            yield TaggedWords(words, tags)


def _columns(n: int) -> str:
    return "1 column" if n == 1 else f"{n} columns"


def numbered_blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield groups of lines between blank lines, with line numbers.

    Comments at the beginning of the file are left out.
    """
    block: list[tuple[int, str]] = []
    begun = False
    for number, line in numbered_lines(path):
        if line.strip():
            begun = begun or not line.startswith("#")
            if begun:
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
    tag: int | None = None
    """Column of the tag, from 0; None if there is none."""

    @classmethod
    def of(
        cls,
        first: Sequence[str],
        lines: Sequence[str],
        column: str | ColumnChoice,
        word_column: int | None,
    ) -> _Layout:
        """Detect the layout.

        Args:
            first: The first sentence, whose first line is not a comment.
            lines: The first sentences.
            column: Column with the tags.
            word_column: Column with the words.
        """
        tabs = "\t" in first[0]
        rows = [line.split("\t") if tabs else line.split() for line in first]
        cells = rows[0]
        numbered = len(cells) > 1 and _count_up([r[0] for r in rows if not r[0].startswith("#")])
        word = word_column if word_column is not None else 2 if numbered else 1
        layout = cls(tabs, numbered, len(cells), word - 1)
        if not isinstance(column, str):
            some = [layout.cells(line) for line in lines if not layout.skips(line)]
            tag = column(Columns(some, numbered, word)) if some else None
            return replace(layout, tag=None if tag is None else tag - 1)
        if column.lower() in CONLLU and not numbered:
            raise InputError(
                f"{column} is a column of CoNLL-U, whose lines start with numbers, but the first "
                f"line starts with {shown(cells[0])}; give the number of the column, from 1"
            )
        return replace(layout, tag=column_number(column) - 1)

    @property
    def needed(self) -> int:
        return max(self.word, self.tag or 0) + 1

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
