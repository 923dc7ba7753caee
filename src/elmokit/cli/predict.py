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
from elmokit.cli.task_options import ColumnOption, TaskModelArgument, parse_columns
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.tasks.inputs import Input
    from elmokit.tasks.task import Task

_AT_ONCE = 1024  # inputs

FORMATS = ("text", "jsonl", "conll")


def predict(
    model: TaskModelArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[INPUT]",
            help="One text per line, or a table; see docs/task-data.md. - for standard input.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="A text, instead of a file.")] = None,
    format: Annotated[str, choice(*FORMATS, help="What to print.")] = "text",
    out: Annotated[
        Path | None, typer.Option(help="Write to a file instead.", callback=check_file)
    ] = None,
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Tokens are separated by white space already.")
    ] = False,
    column: ColumnOption = None,
    device: DeviceOption = None,
) -> None:
    """Print what a task model predicts for each text of a file, or for one text.

    Answers in the file are ignored. A blank line gives a blank line, or an empty result in JSONL.
    """
    from elmokit.arguments import one_of
    from elmokit.io.atomic import new_file
    from elmokit.tasks import load
    from elmokit.tasks.inputs import as_input, read_inputs

    one_of(format, "format", FORMATS)
    if (file is None) == (text is None):
        raise InputError("give either a file or --text")
    columns = parse_columns(column)
    if columns and file is None:
        raise InputError("--column is for a file; leave it out with --text")
    task = load(model, device=device, tokenizer="whitespace" if tokenized else None)
    if format == "conll" and not hasattr(task, "to_conll"):
        raise InputError(f"--format conll is for taggers, and {model} is a model for {task.name}")
    inputs = (
        iter([as_input(task, text or "")]) if file is None else read_inputs(task, file, columns)
    )
    lines = _predicted(task, inputs, format)
    if out is None:
        for line in lines:
            print(line)
        return
    with new_file(out) as new, new.open("w", encoding="utf-8", newline="\n") as target:
        target.writelines(line + "\n" for line in lines)
    say(f"wrote {out}")


def _predicted(task: Task[Any, Any], inputs: Iterator[Input], format: str) -> Iterator[str]:
    from itertools import islice

    while some := list(islice(inputs, _AT_ONCE)):
        found = iter(task.predict([item.example for item in some if item.example is not None]))
        for item in some:
            prediction = None if item.example is None else next(found)
            if format == "jsonl":
                yield json.dumps(item.given | task.record(prediction), ensure_ascii=False)
            elif prediction is not None:
                yield task.to_conll(prediction) if format == "conll" else task.show(prediction)  # type: ignore[attr-defined]
            elif format == "text":  # CoNLL has no empty sentences
                yield ""
