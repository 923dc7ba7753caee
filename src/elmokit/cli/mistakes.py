"""Mistakes in a command line as one sentence each. Typer itself would print them in a box."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from elmokit.errors import InputError, shown
from elmokit.settings import MOST_SEED

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""Typer's base class for such mistakes. Some versions of typer bring their own copy of click."""

_NUMBERS = {"INTEGER": "a whole number", "NUMBER": "a number"}


def sentence(error: Any, command: Any, ctx: Any, typed: list[str]) -> str:
    """Describe a mistake.

    Args:
        error: What typer found.
        command: The command or group of commands.
        ctx: Its context.
        typed: What follows its name on the command line.
    """
    path = ctx.command_path
    kind = type(error).__name__
    parameter: Any = getattr(error, "param", None)
    if kind == "NoSuchOption":
        return f"{path} has no option {error.option_name}{_instead(error.possibilities, path)}"
    if kind == "BadOptionUsage":
        takes_none = "not take" in error.message
        return f"{error.option_name} {'takes no' if takes_none else 'needs a'} value; see {path} -h"
    if kind == "MissingParameter" and parameter.param_type_name == "option":
        return f"{path} needs the option {_name(parameter)}; see {path} -h"
    if kind == "MissingParameter":
        pieces = " ".join(command.collect_usage_pieces(ctx))
        return f"{_name(parameter)} is missing; expected {path} {pieces}"
    if parameter is not None:
        return _bad_value(parameter, _given(command, ctx, typed, parameter), error)
    if extra := _given(command, ctx, typed):
        return f"{path} takes no argument {shown(extra[0])}; {_where_it_belongs(command, path)}"
    return f"{path}: {error.message.rstrip('.').lower()}; see {path} -h"


def _where_it_belongs(command: Any, path: str) -> str:
    if any(parameter.param_type_name == "argument" for parameter in command.params):
        return f"quote a text with spaces, or see {path} -h"
    with_model = any("--model" in parameter.opts for parameter in command.params)
    return "give a model as --model NAME" if with_model else f"see {path} -h"


def no_command(name: str, group: Any, ctx: Any) -> str:
    """Describe a command that does not exist."""
    close = get_close_matches(name, list(group.commands), n=1)
    return f"{ctx.command_path} has no command {shown(name)}{_instead(close, ctx.command_path)}"


def check_values(command: Any, ctx: Any) -> None:
    """Raise on values that no command can use: huge numbers, and text that is not UTF-8."""
    for parameter in command.params:
        value = ctx.params.get(parameter.name)
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, int) and abs(one) > MOST_SEED:
                raise InputError(
                    f"{_name(parameter)} must be at most {MOST_SEED:,}, not {shown(one)}"
                )
            if isinstance(one, str | Path) and str(one).startswith("~"):
                expanded(one)
            if isinstance(one, str) and not _is_utf8(one):
                raise InputError(
                    f"{_name(parameter)} is not UTF-8 text: {shown(one)}; check the encoding of "
                    "the terminal"
                )


def expanded(path: str | Path) -> Path:
    """Return a path with ~ replaced by the home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"there is no home folder for {path}; give a path without ~") from None


def _bad_value(parameter: Any, value: Any, error: Any) -> str:
    """Describe a value that is no number, outside a range, or a path that cannot be read."""
    values = value if isinstance(value, list | tuple) else [value]
    locked = [v for v in values if isinstance(v, str) and os.path.exists(v)]
    if parameter.metavar not in _NUMBERS:
        if locked and not os.access(locked[0], os.R_OK):
            return f"cannot read {locked[0]}: no permission"
        return f"{_name(parameter)} cannot be {shown(value)}: {error.message.rstrip('.')}"
    low, high = (_bound(parameter, which) for which in ("min", "max"))
    limits = "" if low is None else f" of at least {low:,}"
    if low is not None and high is not None:
        limits = f" from {low:,} to {high:,}"
    return f"{_name(parameter)} must be {_NUMBERS[parameter.metavar]}{limits}, not {shown(value)}"


def _given(command: Any, ctx: Any, typed: list[str], parameter: Any = None) -> Any:
    """What was typed for a parameter; without one, the arguments that belong to none."""
    values, rest, _ = command.make_parser(ctx).parse_args(list(typed))
    if parameter is None:
        return rest
    return values.get(parameter.name) or parameter.value_from_envvar(ctx)


def _bound(parameter: Any, which: str) -> Any:
    own = getattr(parameter, which, None)
    return own if own is not None else getattr(getattr(parameter, "type", None), which, None)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"the argument {parameter.metavar or parameter.name.upper()}"
    return max(parameter.opts, key=len)


def _instead(close: Any, path: str) -> str:
    return f"; did you mean {sorted(close)[0]}?" if close else f"; see {path} -h"


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
