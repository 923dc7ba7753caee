"""Sentences with a tag for each word, from CoNLL files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from elmokit.arguments import file_path
from elmokit.errors import InputError
from elmokit.io.conll import CONLLU, Columns, column_number, read_conll_file
from elmokit.io.lines import find_files, shown_path
from elmokit.tasks.readers.chosen_columns import checked_columns
from elmokit.tasks.readers.examples import TaggedExample

_ENTITY_TAG = re.compile(r"(?:O|[BIMELSU]-.+)$")  # IOB, BIOES, BILOU and BMES
_ANY_ENTITY_TAG = re.compile(r"O|[BIMELSU](-.+)?")  # with one type, it may be left out
_MOST = 0.9  # of a column; the others are mistakes, which deserve an error of their own


def read_tagged_examples(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    labelled: bool = True,
    upos: bool = False,
    entities: bool = False,
) -> list[TaggedExample]:
    """Read the sentences of a CoNLL file, or of all files in a folder.

    Args:
        path: One word per line, with columns separated by tabs or spaces, and a blank line between
            sentences.
        columns: Where words and tags are, such as ``{"word": "1", "tag": "4"}``: numbers from 1, or
            names of CoNLL-U. Without, words are in the second column if lines start with numbers,
            and in the first otherwise. Tags are in the last column with tags such as B-PER and O,
            or else in the last column.
        labelled: Whether each word needs a tag.
        upos: Whether the tags of CoNLL-U are those of its column upos.
        entities: Whether each tag must be one of entities, such as B-PER or O.
    """
    path = file_path(path, "path")
    chosen = checked_columns(columns, ("word", "tag"), {"word": "1", "tag": "4"})
    places = {name: column_number(place) for name, place in chosen.items()}  # checks both
    word, tag = places.get("word"), chosen.get("tag")
    column = partial(_choose, shown_path(path), labelled, upos) if tag is None else tag
    pattern = _ANY_ENTITY_TAG if entities else None
    examples = []
    for file in find_files([path]):
        for sentence in read_conll_file(file, column, word, labelled, pattern):
            tags = [tag for tag in sentence.tags if tag]
            complete = len(tags) == len(sentence.words)
            examples.append(TaggedExample(sentence.words, tags if complete else None))
    if not examples:
        raise InputError(
            f"no sentences found in {shown_path(path)}; expected one word per line, with its tag"
        )
    return examples


def _choose(name: str, labelled: bool, upos: bool, columns: Columns) -> int | None:
    """Return the column of the tags, from 1."""
    first = columns.rows[0]
    is_conllu = columns.numbered and len(first) >= len(CONLLU)
    if upos and is_conllu:
        return CONLLU.index("upos") + 1
    if not upos:
        for column in range(len(first), columns.word, -1):
            cells = [row[column - 1] for row in columns.rows if len(row) >= column]
            fitting = sum(_ENTITY_TAG.match(cell) is not None for cell in cells)
            if fitting >= _MOST * len(columns.rows):
                return column
    if not is_conllu and len(first) > columns.word:
        return len(first)
    if not labelled:
        return None
    if is_conllu:
        what = "is CoNLL-U, and no column has tags such as B-PER"
    elif columns.word > 1 + columns.numbered:
        what = "has no column after the words"
    else:
        raise InputError(f"{name} has words only; add a column with the tag of each word")
    raise InputError(f'{name} {what}; choose a column of tags with columns={{"tag": "3"}}')
