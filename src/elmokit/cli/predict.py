"""``elmokit predict``: what a task model says about new text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli.options import DeviceOption, choice
from elmokit.cli.output import say
from elmokit.cli.places import check_file
from elmokit.cli.task_options import ColumnOption, TaskModelArgument, parse_columns
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.tasks.inputs import Input, Inputs
    from elmokit.tasks.marked_text import MarkedText
    from elmokit.tasks.task import Task

    Pairs = Iterator[tuple[Input, Any]]

_AT_ONCE = 256  # inputs

FORMATS = ("text", "jsonl", "conll", "html")


def predict(
    model: TaskModelArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[INPUT]",
            help="One text per line, one document (coref), or a table; see docs/task-data.md. "
            "- for standard input.",
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
    from elmokit.tasks.inputs import Inputs, as_input, read_inputs
    from elmokit.tasks.task import defines

    one_of(format, "format", FORMATS)
    if (file is None) == (text is None):
        raise InputError("give either a file or --text")
    given = [path for path in (file, out) if path is not None and path.exists()]
    if len(given) == 2 and given[0].samefile(given[1]):
        raise InputError(f"--out {out} is the input, which would be lost; choose another file")
    columns = parse_columns(column)
    if columns and file is None:
        raise InputError("--column is for a file; leave it out with --text")
    task = load(model, device=device, tokenizer="whitespace" if tokenized else None)
    if format == "conll" and not defines(task, "to_conll"):
        raise InputError(
            f"--format conll is for ner, pos, srl and coref, and {model} is a model for {task.name}"
        )
    if format == "html" and not defines(task, "marked"):
        raise InputError(f"--format html is for marked text, which {task.name} does not have")
    inputs = (
        Inputs(iter([as_input(task, text or "")]), 1)
        if file is None
        else read_inputs(task, file, columns)
    )
    watched = out is None and is_terminal()
    pairs = _pairs(task, inputs, watched)
    if watched and format == "text" and defines(task, "marked"):
        _print_colours(task, pairs)
        return
    lines = _predicted(task, pairs, format)
    if out is None:
        for line in lines:
            print(line)
        return
    with new_file(out) as new, new.open("w", encoding="utf-8", newline="\n") as target:
        target.writelines(line + "\n" for line in lines)
    say(f"wrote {out}")


def is_terminal() -> bool:
    """Whether a person reads the output."""
    return sys.stdout.isatty()


def _predicted(task: Task[Any, Any], pairs: Pairs, format: str) -> Iterator[str]:
    from elmokit.tasks.marked_text import html_page

    if format == "html":
        texts = (text for _, found in pairs for text in _marked(task, found))
        yield from html_page(texts, f"elmokit predict: {task.name}")
        return
    for item, prediction in pairs:
        if format == "jsonl":
            yield json.dumps(item.given | task.record(prediction), ensure_ascii=False)
        elif prediction is not None:
            yield task.to_conll(prediction) if format == "conll" else task.show(prediction)
        elif format == "text":  # CoNLL has no empty sentences
            yield ""


def _pairs(task: Task[Any, Any], inputs: Inputs, watched: bool) -> Pairs:
    """Yield inputs with their predictions; that for a blank line is None.

    If they are printed to a terminal, a bar is shown only while the next ones are computed.
    """
    from elmokit.io.progress import DelayedProgress

    whole = not watched and (inputs.total is None or inputs.total > _AT_ONCE)
    with DelayedProgress("predicting", inputs.total, "texts", whole) as bar:
        while some := list(islice(inputs.items, _AT_ONCE)):
            asked = [item.example for item in some if item.example is not None]
            found = iter(task.predict(asked, progress=not whole))
            for item in some:
                yield item, None if item.example is None else next(found)
            bar.advance(len(some))


def _marked(task: Task[Any, Any], prediction: Any) -> list[MarkedText]:
    return [] if prediction is None else task.marked(prediction)


def _print_colours(task: Task[Any, Any], pairs: Pairs) -> None:
    """Print text with marked spans in colours, which a terminal shows."""
    from rich.console import Console
    from rich.text import Text

    from elmokit.tasks.marked_text import COLOURS

    console = Console(highlight=False, soft_wrap=True)
    for _, prediction in pairs:
        for text in _marked(task, prediction):
            line = Text()
            if text.title:
                line.append(f"{text.title} ", "bold")
            for piece, group in text.pieces():
                line.append(piece, "" if group is None else f"bold {COLOURS[group % len(COLOURS)]}")
            console.print(line)
        if prediction is None:
            console.print()
