"""What a file gives to predict: its lines, its rows, or all of it; answers are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import InputError
from elmokit.io.lines import count_lines, numbered_lines, shown_path
from elmokit.tasks.readers.examples import given_names
from elmokit.tasks.task import Task


class Input(NamedTuple):
    """One text, or one row of a table."""

    given: dict[str, Any]
    """The text as ``text``, or what was read from the row, for JSON."""
    example: Any
    """None for a blank line, for which there is nothing to predict."""


class Inputs(NamedTuple):
    """The inputs of a file, which may be read while they are used."""

    items: Iterator[Input]
    total: int | None
    """How many there are; None if only reading all of them would tell."""


def read_inputs(task: Task[Any, Any], path: Path, columns: dict[str, str] | None = None) -> Inputs:
    """Return the inputs of a file: every line, blank ones too, or every row of a table.

    For a task that reads whole files, a file that is no table is one input.

    Args:
        task: Decides which files are tables.
        path: A file, packed or not; ``-`` for standard input.
        columns: Which columns of a table to read; they make any file a table.
    """
    if task.is_table(path, columns):
        names = given_names(task.example)
        rows = task.read(path, columns, labelled=False)
        given = ({name: getattr(row, name) for name in names} for row in rows)
        return Inputs(map(Input, given, rows), len(rows))
    if task.whole_files:
        text = "\n".join(line for _, line in numbered_lines(path))
        return Inputs(iter([as_input(task, text)]), 1)
    return Inputs(_lines(task, path), count_lines(path))


def _lines(task: Task[Any, Any], path: Path) -> Iterator[Input]:
    for number, line in numbered_lines(path):
        try:
            yield as_input(task, line)
        except InputError as error:
            raise InputError(f"line {number} of {shown_path(path)}: {error}") from None


def as_input(task: Task[Any, Any], text: str) -> Input:
    """Return the input of one text."""
    if not text.strip():
        return Input({"text": ""}, None)
    return Input({"text": text}, task.parse(text))
