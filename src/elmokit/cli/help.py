"""Commands as typer runs them, with another help and other errors.

The help has readable metavars, usage lines, and paragraphs that fill the width. A mistake in the
command line is an error of ElmoKit, one sentence long.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from elmokit.cli.mistakes import USAGE_ERROR, check_values, no_command, sentence
from elmokit.errors import InputError

_METAVARS = {"path": "PATH", "str": "TEXT", "int": "INTEGER", "float": "NUMBER"}
"""Typer shows types as Python names them, such as ``<list[Path]>`` and ``<int range>``."""


class Command(TyperCommand):
    """A command whose help shows arguments as NAME and options as ``--option TYPE``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, with readable metavars."""
        return [_readable(parameter, ctx) for parameter in super().get_params(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        return _parsed(self, super().parse_args, ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """[OPTIONS], then each argument: NAME, [NAME] if optional, NAME... if repeatable."""
        pieces = [self.options_metavar] if self.options_metavar else []
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = parameter.metavar if parameter.required else f"[{parameter.metavar}]"
                pieces.append(name + ("" if parameter.nargs == 1 else "..."))
        return pieces


class Group(TyperGroup):
    """A group of commands, with the same metavars."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, with readable metavars."""
        return [_readable(parameter, ctx) for parameter in super().get_params(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line, up to the name of a command; print the help if it is empty."""
        if not args and not ctx.resilient_parsing:
            print(ctx.get_help())
            ctx.exit(2)
        return _parsed(self, super().parse_args, ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise InputError(no_command(args[0], self, ctx))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        if not (ctx.args or getattr(ctx, "_protected_args", ())):
            raise InputError(f"a command is missing; see {ctx.command_path} -h")
        return super().invoke(ctx)


def _parsed(
    command: Any, parse: Callable[[Any, list[str]], list[str]], ctx: Any, args: list[str]
) -> list[str]:
    typed = list(args)  # the parser empties its list
    try:
        rest = parse(ctx, args)
    except USAGE_ERROR as error:
        if ctx.resilient_parsing:
            raise
        raise InputError(sentence(error, command, ctx, typed)) from error
    check_values(command, ctx)
    return rest


def _readable(parameter: Any, ctx: Any) -> Any:
    """Set a parameter's metavar, unless it has one."""
    if parameter.param_type_name == "argument":
        parameter.metavar = parameter.metavar or parameter.name.upper()
        parameter.display_type_rich = lambda ctx: None  # the help says what it is
    elif parameter.metavar is None and hasattr(parameter, "display_type"):
        shown = parameter.display_type(ctx).strip("<>").removesuffix(" range")
        inner = shown.removeprefix("list[").removesuffix("]").lower()
        parameter.metavar = "" if parameter.is_flag else _METAVARS.get(inner, inner.upper())
    return parameter


def tidy(app: typer.Typer) -> None:
    """Give all commands of an app this help, with docstrings reflowed to the terminal's width."""
    for group in (app, *(entry.typer_instance for entry in app.registered_groups)):
        if group is None:
            continue
        group.info.cls = Group
        for entry in group.registered_commands:
            entry.cls = Command
            paragraphs = (inspect.getdoc(entry.callback) or "").split("\n\n")
            entry.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def walk(app: typer.Typer) -> Iterator[tuple[str, Any]]:
    """All commands of an app with their full names: ``embed``, ``wsd train``."""

    def below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        for part in getattr(command, "commands", {}).values():
            yield from below(part, f"{name} {part.name}".strip())
        if not hasattr(command, "commands"):
            yield name, command

    return below(get_command(app), "")
