"""What several commands share: the options that choose a model, and tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from elmokit.analysis.report import Report
    from elmokit.elmo import Elmo

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="Folder, ZIP archive or name of a model; the bundled one if left out."
    ),
]
OptionsFileOption = Annotated[
    Path | None, typer.Option(help="Instead of --model: a published options.json…")
]
WeightFileOption = Annotated[Path | None, typer.Option(help="…and its HDF5 weights.")]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        help="whitespace, english, english-hyphens, characters or chinese; "
        "the model's own if left out."
    ),
]
TokenizedOption = Annotated[
    bool, typer.Option("--tokenized", help="Lines are sentences, tokens apart by white space.")
]
DeviceOption = Annotated[
    str | None, typer.Option(help="cpu, cuda or cuda:N; a GPU where there is one if left out.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(help="Write OUT.json, OUT.csv, and the picture as OUT.png and OUT.svg."),
]


def open_model(
    model: str | None,
    options_file: Path | None = None,
    weight_file: Path | None = None,
    tokenizer: str | None = None,
    device: str | None = None,
    quantize: str | None = None,
) -> Elmo:
    """The model a command was asked to use."""
    from elmokit.elmo import Elmo

    return Elmo.load(
        model,
        options=options_file,
        weights=weight_file,
        tokenizer=tokenizer,
        device=device,
        quantize=quantize,
    )


def layer_names(elmo: Elmo) -> list[str]:
    """Names of all layers for a table."""
    kind = "LSTM" if elmo.config.context.kind == "lstm" else "transformer"
    return ["token layer", *(f"{kind} layer {k}" for k in range(1, elmo.n_layers))]


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on standard output; numbers to the right."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    padding = (0, 1) if len(columns) < 9 else 0  # many columns need the room
    table = Table(
        *columns[:1], title=title or None, box=SIMPLE, title_justify="left", padding=padding
    )
    for name in columns[1:]:
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def check_out(out: Path | None) -> None:
    """Find out before the work, not after it, that its result cannot be written."""
    if out is None:
        return
    from importlib.util import find_spec

    from elmokit.errors import MissingExtraError, OutputError

    if not out.parent.is_dir():
        raise OutputError(f"cannot write {out}: its folder does not exist; make it first")
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "plots", "Pictures")


def give(report: Report, out: Path | None) -> None:
    """Print what an analysis found, and write it where it was asked for."""
    print_table(report.columns, report.shown(), report.title)
    save(report, out)


def save(report: Report, out: Path | None) -> None:
    """Write what an analysis found where it was asked for, and say so."""
    if out is not None:
        print("wrote " + ", ".join(str(path) for path in report.write(out)))
        for warning in report.warnings:
            print(f"elmokit: {warning}", file=sys.stderr)
