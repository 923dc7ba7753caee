"""The columns of a file that a user chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from elmokit.arguments import wrong
from elmokit.errors import InputError, shown
from elmokit.io.conll import column_number


def checked_columns(
    columns: Any, names: Sequence[str], example: Mapping[str, str]
) -> dict[str, str]:
    """Return the names or numbers of columns as text; empty for None.

    Args:
        columns: What a user gave.
        names: Which columns can be chosen.
        example: A choice for the error message.
    """
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise wrong("columns", f"a dictionary, such as {json.dumps(example)}", columns)
    for name, place in columns.items():
        if name not in names:
            raise InputError(
                f"columns= contains {shown(name)}; expected only the names {named(names)}"
            )
        if not isinstance(place, str | int) or isinstance(place, bool) or not str(place).strip():
            raise wrong(f'columns["{name}"]', "a name, or a number from 1", place)
    return {name: str(place).strip() for name, place in columns.items()}


def numbered_columns(
    columns: Any, names: Sequence[str], example: Mapping[str, str]
) -> dict[str, int]:
    """Return the numbers of columns, from 1; arguments as above."""
    chosen = checked_columns(columns, names, example)
    return {name: column_number(place) for name, place in chosen.items()}


def named(names: Sequence[str]) -> str:
    """Return a list of names as people write it: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
