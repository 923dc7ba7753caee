"""Two texts as a user gives them: a pair, or a line with a tab between them."""

from __future__ import annotations

from typing import Any

from elmokit.errors import InputError


def two_texts(given: Any, wanted: str = "two texts", tabs: bool = False) -> tuple[Any, Any]:
    """Return both texts, which are not checked.

    Args:
        given: The user's input.
        wanted: What to call the texts in an error message.
        tabs: Whether the second text may contain tabs.
    """
    pair = given.split("\t", 1 if tabs else -1) if isinstance(given, str) else given
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise InputError(f"expected {wanted}: a pair, or a line with a tab between them")
    return pair[0], pair[1]


def is_pair(given: Any) -> bool:
    """Whether an input is one pair: a tuple of two texts. A list has many pairs."""
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str | list)
