"""Columns of a file of examples, as the command line gives them."""

from __future__ import annotations

from elmokit.errors import InputError


def parse_columns(given: list[str] | None) -> dict[str, str]:
    """Return the columns of ``--column NAME=COLUMN``."""
    found = {}
    for item in given or []:
        name, _, column = map(str.strip, item.partition("="))
        if not (name and column):
            raise InputError(f"--column needs NAME=COLUMN, such as text=2, not {item!r}")
        found[name] = column
    return found
