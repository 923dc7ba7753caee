"""``elmokit train``: train a task model on your own files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.flags import in_flags
from elmokit.cli.options import ModelOptions, ResumeOption, choice, with_model
from elmokit.cli.output import say
from elmokit.cli.task_options import ColumnOption, parse_columns
from elmokit.tasks.names import TASKS


@with_model(leave_out=("quantize",))
def train(
    task: Annotated[str, typer.Argument(help=f"One of {', '.join(TASKS)}.")],
    train: Annotated[Path, typer.Option(help="Examples to learn from; see docs/task-data.md.")],
    dev: Annotated[Path, typer.Option(help="Examples that choose the best epoch.")],
    out: Annotated[Path, typer.Option(help="Folder for the model and the training.")],
    model: ModelOptions,
    vectors: Annotated[
        str | None,
        typer.Option(
            help="Static vectors: none, token (ELMo's token layer) or a file.",
            show_default="the task's",
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            help="ELMo's layers: mix, average, top, a number, or none.", show_default="mix"
        ),
    ] = None,
    elmo_at: Annotated[
        str | None,
        choice(
            "input",
            "output",
            "both",
            help="Where ELMo enters the network.",
            show_default="the task's",
        ),
    ] = None,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Let the biLM learn too; slower.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="Most passes over the examples.", show_default="the task's")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Examples per step.", show_default="the task's")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate.", show_default="the task's")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same model.", show_default="0")
    ] = None,
    column: ColumnOption = None,
    recipe: Annotated[Path | None, typer.Option(help="TOML file with settings.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting, such as model.hidden_dim=100; see docs/tasks.md. May be repeated.",
        ),
    ] = None,
    resume: ResumeOption = False,
) -> None:
    """Train a classifier, a tagger or another task model on static vectors and ELMo.

    OUT contains a checkpoint to resume from and, in best/, the model of the best epoch. Ctrl-C
    keeps the best so far.
    """
    from elmokit.cli import recipe_options as given
    from elmokit.settings import Mistakes, merge
    from elmokit.tasks import task_class

    kind = task_class(task)
    options: dict[str, dict[str, Any]] = {
        "input": {"vectors": vectors, "layers": layers, "at": elmo_at},
        "tuning": {"enabled": fine_tune or None},
        "training": {
            "epochs": epochs,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "seed": seed,
        },
    }
    mistakes, settings = Mistakes(), None
    in_file: dict[str, Any] = {}
    columns: dict[str, str] = {}
    with mistakes.noted():
        in_file = given.from_file(recipe, None)
    in_line = given.from_line(setting or [], options, mistakes)
    with mistakes.noted():
        columns = parse_columns(column)
    with mistakes.noted():
        settings = kind.defaults.changed(merge(in_file, in_line))
    mistakes.report()
    kind.train(
        train,
        dev,
        elmo=model.load(),
        settings=settings,
        out=out,
        resume=resume,
        columns=columns,
        say=lambda line: say(in_flags(line, sys.argv[1:])),
    )
