"""Two texts as a user gives them: a pair, or a line with a tab between them."""

from __future__ import annotations

from typing import Any

from elmokit.errors import InputError
from elmokit.tasks.readers.examples import Words


def two_texts(given: Any) -> tuple[Words, Words]:
    """Return both texts."""
    pair = given.split("\t") if isinstance(given, str) else given
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise InputError("expected two texts: a pair, or a line with a tab between them")
    return pair[0], pair[1]


def is_pair(given: Any) -> bool:
    """Whether an input is one pair: a tuple of two texts. A list has many pairs."""
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str | list)
