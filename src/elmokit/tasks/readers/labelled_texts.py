"""Texts with a class each: rows of a table, or lines that begin with the label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elmokit.errors import InputError, shown
from elmokit.tasks.readers.examples import TextExample
from elmokit.tasks.readers.records import Source
from elmokit.tasks.readers.rows import Wanted, read_rows

COLUMNS = Wanted(("text",), "label", {1: ("text",), 2: ("label", "text")})

_MOST_LABELS = 0.5  # of the lines, if these are many; more labels are words of plain text
_MANY_LINES = 20


def read_text_examples(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    labelled: bool = True,
    tokenized: bool = False,
) -> list[TextExample]:
    """Read texts and their classes.

    Args:
        path: A TSV, CSV or JSONL file with the columns text and label. A file of another name whose
            first line contains a tab is read as TSV; other lines are a label, a space and a text.
        columns: Where the columns are, such as ``{"label": "1", "text": "3"}``: names in the first
            line, or numbers from 1.
        labelled: Whether each text needs a label. Without, a file that is no table has one text per
            line.
        tokenized: Whether the tokens of a text are separated by spaces already.
    """
    source = Source(path)
    tabs = labelled and "\t" in source.first
    if columns or source.kind or tabs:
        return [
            TextExample(row.text("text", tokenized), row.label("label", labelled))
            for row in read_rows(source, COLUMNS, columns, labelled)
        ]
    texts = _labelled_lines(source) if labelled else _plain_lines(source)
    return [TextExample(text.split() if tokenized else text, label) for text, label in texts]


def read_plain_texts(path: str | Path) -> list[str]:
    """Read one text per line, without blank lines."""
    return [text for text, _ in _plain_lines(Source(path))]


def _labelled_lines(source: Source) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for number, line in source.lines:
        if not line.strip():
            continue
        label, *rest = line.split(maxsplit=1)
        if not rest:
            raise source.error(
                number, "has one word; expected a label, a space and a text; fix or remove the line"
            )
        found.append((rest[0].strip(), label))
    if not found:
        raise source.nothing("a label, a space and a text on each line")
    n_labels = len({label for _, label in found})
    if len(found) >= _MANY_LINES and n_labels > _MOST_LABELS * len(found):
        raise InputError(
            f"the {len(found):,} lines of {source.name} begin with {n_labels:,} different words, "
            f"such as {shown(found[0][1])}; expected a label, a space and a text on each line"
        )
    return found


def _plain_lines(source: Source) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = [
        (line.strip(), None) for _, line in source.lines if line.strip()
    ]
    if not found:
        raise source.nothing("one text per line")
    return found
