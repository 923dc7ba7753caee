"""``elmokit predict``: what a task model says about new text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli.options import DeviceOption, choice
from elmokit.cli.output import say
from elmokit.cli.places import check_file
from elmokit.cli.task_options import TaskModelArgument
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.tasks.task import Task

_AT_ONCE = 1024  # lines

FORMATS = ("text", "jsonl", "conll")


def predict(
    model: TaskModelArgument,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[INPUT]", help="One text per line; - for standard input."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="A text, instead of a file.")] = None,
    format: Annotated[str, choice(*FORMATS, help="What to print.")] = "text",
    out: Annotated[
        Path | None, typer.Option(help="Write to a file instead.", callback=check_file)
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Print what a task model predicts for each line of a file, or for a text."""
    from elmokit.arguments import one_of
    from elmokit.io.atomic import new_file
    from elmokit.tasks import load

    one_of(format, "format", FORMATS)
    if (file is None) == (text is None):
        raise InputError("give either a file or --text")
    task = load(model, device=device)
    if format == "conll" and not hasattr(task, "to_conll"):
        raise InputError(f"--format conll is for taggers, and {model} is a model for {task.name}")
    lines = _predicted(task, _texts(file, text), format)
    if out is None:
        for line in lines:
            print(line)
        return
    with new_file(out) as new, new.open("w", encoding="utf-8", newline="\n") as target:
        target.writelines(line + "\n" for line in lines)
    say(f"wrote {out}")


def _texts(file: Path | None, text: str | None) -> Iterator[str]:
    from elmokit.io.lines import read_lines

    if text is not None:
        yield text
    elif file is not None:
        yield from (line for line in read_lines(file) if line.strip())


def _predicted(task: Task[Any, Any], texts: Iterator[str], format: str) -> Iterator[str]:
    from itertools import islice

    while some := list(islice(texts, _AT_ONCE)):
        for text, found in zip(some, task.predict(some), strict=True):
            if format == "jsonl":
                yield json.dumps({"text": text} | task.record(found), ensure_ascii=False)
            elif format == "conll":
                yield task.to_conll(found)  # type: ignore[attr-defined]
            else:
                yield task.show(found)
