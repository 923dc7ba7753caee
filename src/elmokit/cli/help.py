"""How ``--help`` looks: readable metavars, usage lines, and paragraphs that fill the width."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

_METAVARS = {"path": "PATH", "str": "TEXT", "int": "INTEGER", "float": "NUMBER"}
"""Typer shows types as Python names them, such as ``<list[Path]>`` and ``<int range>``."""


class Command(TyperCommand):
    """A command whose help shows arguments as NAME and options as ``--option TYPE``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, with readable metavars."""
        return [_readable(parameter, ctx) for parameter in super().get_params(ctx)]

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
