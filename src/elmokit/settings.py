"""Validation of settings: plain values become frozen dataclasses, or one error names every mistake.

A settings class is a dataclass. Its annotations say which types are allowed, and a ``Literal``
lists the allowed values. Its ``__post_init__`` calls :func:`check_rules` with everything that
annotations cannot express. :func:`build` makes one from JSON or TOML values. pydantic would check
types too, but not report mistakes as sentences about settings, and it is a heavy dependency.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from elmokit.errors import ConfigError, ElmoKitError, shortened, shown

MOST_SEED = (1 << 62) - 1
"""The largest seed: every random generator accepts it."""


class Mistakes:
    """Collects mistakes and reports all of them in one error."""

    def __init__(self) -> None:
        self.found: list[str] = []
        """One sentence per mistake."""
        self._first: ElmoKitError | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep an error raised inside for :meth:`report`."""
        try:
            yield
        except ElmoKitError as error:
            self.found.append(str(error))
            self._first = self._first or error

    def report(self) -> None:
        """Raise one error that lists all mistakes; a single one keeps its class."""
        if self._first is not None and len(self.found) == 1:
            raise self._first
        if self.found:
            raise ConfigError("; ".join(self.found)) from self._first


def build(kind: Any, name: str, values: Any) -> Any:
    """Build a settings dataclass from plain values.

    Args:
        kind: The dataclass.
        name: What the section is called in messages.
        values: Field values by name; fields left out keep their defaults.

    Raises:
        ConfigError: Names every unknown field, wrong type and broken rule.
    """
    if not isinstance(values, dict):
        raise ConfigError(f"{name} must be an object, not {shown(values)}")
    types = _field_types(kind)
    mistakes, typed = Mistakes(), {}
    if unknown := sorted(set(values) - set(types)):
        mistakes.found.append(
            f"{name} has the unknown setting {shortened(', '.join(unknown))}; known settings are "
            f"{', '.join(sorted(types))}"
        )
    for key in sorted(values.keys() & types.keys()):
        with mistakes.noted():
            typed[key] = _typed(values[key], types[key], f"{name}.{key}")
    with mistakes.noted():  # checks the rules for the values that have the right type
        made = kind(**typed)
    mistakes.report()
    return made


def check_rules(name: str, rules: list[tuple[bool, str, str]], config: Any) -> None:
    """Check the values of a settings dataclass.

    Args:
        name: What the section is called in messages.
        rules: (whether the rule holds, the field, what the field must be).
        config: The dataclass; fields annotated with a ``Literal`` are checked too.

    Raises:
        ConfigError: Names every broken rule.
    """
    broken = []
    kind: Any = type(config)
    for key, wanted in _field_types(kind).items():
        if _is_literal(wanted):
            try:
                _typed(getattr(config, key), wanted, f"{name}.{key}")
            except ConfigError as error:
                broken.append(str(error))
    broken += [
        f"{name}.{key} must be {wanted}, not {shortened(str(getattr(config, key, 'as given')))}"
        for holds, key, wanted in rules
        if not holds
    ]
    if broken:
        raise ConfigError("; ".join(broken))


def check_types(name: str, config: Any) -> None:
    """Check the types of a settings dataclass that Python code has made.

    Call it before :func:`check_rules`: rules compare values, which fails for other types.

    Raises:
        ConfigError: Names every value of a wrong type.
    """
    mistakes = Mistakes()
    kind: Any = type(config)
    for key, wanted in _field_types(kind).items():
        if _is_literal(wanted):  # left to check_rules, which reports all mistakes together
            continue
        with mistakes.noted():
            _typed(getattr(config, key), wanted, f"{name}.{key}")
    mistakes.report()


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return nested settings with some of them changed."""
    merged = dict(base)
    for key, value in changes.items():
        old = base.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted names, such as ``optimizer.learning_rate``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


@cache
def _field_types(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _is_literal(wanted: Any) -> bool:
    return get_origin(wanted) is Literal


def _typed(value: Any, wanted: Any, name: str) -> Any:
    """Convert a JSON value to the type of a field: lists become tuples, 3 becomes 3.0."""
    union = get_origin(wanted) in (UnionType, Union)
    options = get_args(wanted) if union else (wanted,)
    for option in options:
        if _is_literal(option):
            if isinstance(value, str) and value in get_args(option):
                return value
        elif get_origin(option) is tuple and isinstance(value, list | tuple):
            inner = get_args(option)
            kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
            if len(kinds) == len(value):
                each = f"each of {name}"
                return tuple(_typed(v, k, each) for v, k in zip(value, kinds, strict=True))
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(OverflowError):
                return float(value)
        elif isinstance(option, type) and type(value) is option:
            return value
    raise ConfigError(f"{name} must be {' or '.join(map(_in_words, options))}, not {shown(value)}")


def _in_words(kind: Any) -> str:
    """Describe a type to readers who do not write Python."""
    if _is_literal(kind):
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        n = "" if inner[-1] is Ellipsis else f" of {len(inner)}"
        return f"a list{n}, each {_in_words(inner[0])}"
    words = {float: "a number", int: "a whole number", str: "text", bool: "true or false"}
    return "nothing" if kind is type(None) else words.get(kind, f"a {kind.__name__}")
