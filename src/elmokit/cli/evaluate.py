"""``elmokit evaluate``: score a task model on a file of examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import DeviceOption
from elmokit.cli.output import print_table


def evaluate(
    model: Annotated[str, typer.Argument(help="Task model: a folder that elmokit train wrote.")],
    examples: Annotated[Path, typer.Argument(help="Examples with answers; see docs/task-data.md.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(help="A column to read, such as text=2 or label=class. May be repeated."),
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Print how well a task model does: scores, per class, and which classes it confuses."""
    from elmokit.cli.columns import parse_columns
    from elmokit.tasks import load

    columns = parse_columns(column)
    scores = load(model, device=device).evaluate(examples, columns)
    if as_json:
        print(json.dumps(scores.to_dict(), indent=2, ensure_ascii=False))
        return
    for header, *rows in (scores.summary_rows(), scores.class_rows(), scores.confusion_rows()):
        if rows:
            print_table(header, rows)
