"""Checks of arguments: the value in its expected type, or an InputError that names the argument.

Public functions call these before they start to work. Code below the public functions relies on the
types it is given.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from elmokit.errors import InputError, shown

LARGEST_NUMBER = 1e30
"""Of a setting; float32 can still compute with it."""

Kind = TypeVar("Kind")

_LONGEST_NAME = 255  # of all common file systems
# iterable, but not lists of items; the keys of a dictionary are in order
_NOT_LISTS = (str, bytes, bytearray, memoryview, Mapping, set, frozenset)


def wrong(name: str, wanted: str, value: object) -> InputError:
    """The error for a value that is not what an argument must be."""
    return InputError(f"{name} must be {wanted}, not {described(value)}")


def described(value: object) -> str:
    """A value as an error quotes it, with its type if the value does not show it."""
    plain = value is None or isinstance(value, str | int | float)
    return shown(value) if plain else f"{shown(value)} ({type(value).__name__})"


def whole_number(value: Any, name: str, least: int | None = None, most: int | None = None) -> int:
    """An integer of Python or numpy within limits; True and False are none."""
    try:
        found = None if _is_flag(value) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # the last two from tensors
        found = None
    if found is not None and (least is None or found >= least) and (most is None or found <= most):
        return found
    raise wrong(name, "a whole number" + _limits(least, most), value)


def number(
    value: Any, name: str, least: float = -LARGEST_NUMBER, most: float = LARGEST_NUMBER
) -> float:
    """A finite number within limits, as a float."""
    try:
        found = math.nan if isinstance(value, str | bytes) or _is_flag(value) else float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        found = math.nan
    if least <= found <= most:
        return found
    raise wrong(name, "a number" + _limits(least, most), value)


def numbers(value: Any, name: str) -> list[float]:
    """Finite numbers, from a list, an array or a tensor."""
    items = each(value, name, "a list of numbers")
    return [number(item, f"each of {name}") for item in items]


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """One of some words."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    *others, last = choices
    raise wrong(name, f"{', '.join(others)} or {last}" if others else last, value)


def flag(value: Any, name: str) -> bool:
    """True or False, of Python or numpy."""
    if _is_flag(value):
        return bool(value)
    raise wrong(name, "True or False", value)


def instance(value: Any, name: str, kind: type[Kind], wanted: str) -> Kind:
    """An object of a class."""
    if isinstance(value, kind):
        return value
    raise wrong(name, wanted, value)


def file_path(value: Any, name: str) -> Path:
    """A path, from a string or a path; ``~`` stays as it is."""
    try:
        found = Path(value)
        longest = max(map(len, os.fsencode(found).split(os.fsencode(os.sep))))
    except (TypeError, UnicodeEncodeError):
        raise wrong(name, "a path", value) from None
    if "\0" in str(found) or longest > _LONGEST_NAME:
        raise wrong(name, f"a path of names of up to {_LONGEST_NAME} bytes, without NUL", value)
    return found


def each(value: Any, name: str, wanted: str) -> Iterator[Any]:
    """The items of a list, a column, or any other iterable that gives items in their order."""
    if any(hasattr(type(value), columns) for columns in ("columns", "column_names")):
        raise InputError(
            f"{name} is a table ({type(value).__name__}); pass one of its columns, such as "
            'table["text"]'
        )
    if not isinstance(value, _NOT_LISTS):
        try:
            # the items of an Arrow column are not Python's own
            return iter(value.to_pylist() if hasattr(value, "to_pylist") else value)
        except TypeError:
            pass
    raise wrong(name, wanted, value)


def strings(value: Any, name: str, wanted: str = "a list of strings") -> list[str]:
    """A list of strings."""
    items = list(each(value, name, wanted))
    # compare the types first, which is ten times as fast
    if set(map(type, items)) <= {str} or all(isinstance(item, str) for item in items):
        return items
    other = next(item for item in items if not isinstance(item, str))
    raise InputError(f"{name} contains {described(other)}; expected strings only")


def pair_of_numbers(value: Any, name: str) -> tuple[int, int]:
    """Two integers, such as (start, end)."""
    wanted = "a pair of whole numbers"
    items = list(each(value, name, wanted))
    if len(items) != 2:
        raise wrong(name, wanted, value)
    first, second = (whole_number(item, f"each number of {name}") for item in items)
    return first, second


def _is_flag(value: Any) -> bool:
    """Whether a value is True or False, of Python or numpy, which is not imported for this."""
    return type(value).__name__ in ("bool", "bool_")


def _limits(least: float | None, most: float | None) -> str:
    if least is None:
        return "" if most is None else f" up to {most}"
    return f" from {least}" + ("" if most is None else f" to {most}")
