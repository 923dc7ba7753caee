"""``elmokit evaluate``: score a task model on a file of examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import DeviceOption
from elmokit.cli.output import print_table
from elmokit.cli.task_options import ColumnOption, TaskModelArgument, parse_columns


def evaluate(
    model: TaskModelArgument,
    examples: Annotated[Path, typer.Argument(help="Examples with answers; see docs/task-data.md.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    column: ColumnOption = None,
    device: DeviceOption = None,
) -> None:
    """Print how well a task model does: scores, per class, and which classes it confuses."""
    from elmokit.tasks import load

    columns = parse_columns(column)
    scores = load(model, device=device).evaluate(examples, columns)
    if as_json:
        print(json.dumps(scores.to_dict(), indent=2, ensure_ascii=False))
        return
    for header, *rows in (scores.summary_rows(), scores.class_rows(), scores.confusion_rows()):
        if rows:
            print_table(header, rows)
