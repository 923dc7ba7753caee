"""What a file gives to predict: its lines, its rows, or all of it; answers are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import InputError
from elmokit.io.lines import numbered_lines, shown_path
from elmokit.tasks.task import Task


class Input(NamedTuple):
    """One text, or one row of a table."""

    given: dict[str, Any]
    """The text as ``text``, or what was read from the row, for JSON."""
    example: Any
    """None for a blank line, for which there is nothing to predict."""


def read_inputs(
    task: Task[Any, Any], path: Path, columns: dict[str, str] | None = None
) -> Iterator[Input]:
    """Yield the inputs of a file: every line, blank ones too, or every row of a table.

    For a task that reads whole files, a file that is no table is one input.

    Args:
        task: Decides which files are tables.
        path: A file, packed or not; ``-`` for standard input.
        columns: Which columns of a table to read; they make any file a table.
    """
    if task.is_table(path, columns):
        *names, _ = (field.name for field in fields(task.example))  # the last is the answer
        for example in task.read(path, columns, labelled=False):
            yield Input({name: getattr(example, name) for name in names}, example)
        return
    if task.whole_files:
        yield as_input(task, "\n".join(line for _, line in numbered_lines(path)))
        return
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
