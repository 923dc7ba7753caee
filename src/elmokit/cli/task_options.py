"""What the commands about task models share: the model, and the columns of a file of examples."""

from __future__ import annotations

from typing import Annotated

import typer

from elmokit.errors import InputError
from elmokit.tasks.names import bundled_tasks

TaskModelArgument = Annotated[
    str,
    typer.Argument(
        help="Task model: a folder that elmokit train wrote, or a bundled model: "
        f"{', '.join(bundled_tasks())}."
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(help="A column to read, such as text=2 or label=class. May be repeated."),
]


def parse_columns(given: list[str] | None) -> dict[str, str]:
    """Return the columns of ``--column NAME=COLUMN``."""
    found = {}
    for item in given or []:
        name, _, column = map(str.strip, item.partition("="))
        if not (name and column):
            raise InputError(f"--column needs NAME=COLUMN, such as --column text=2, not {item!r}")
        found[name] = column
    return found
