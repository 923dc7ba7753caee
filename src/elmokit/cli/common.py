"""What several commands share: the options that choose a model, and tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.errors import InputError, MissingExtraError, OutputError

if TYPE_CHECKING:
    from elmokit.analysis.reports.report import Report
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
QuantizeOption = Annotated[
    str | None,
    typer.Option(help="int8 on a CPU, bfloat16 on a GPU: faster for large models, nearly exact."),
]


def check_file(path: Path | None) -> Path | None:
    """Find out before the work, not after it, that a file cannot be written; as a callback."""
    from elmokit.io.atomic import check_place

    if path is None:
        return None
    path = path.expanduser()
    check_place(path)
    return path


def check_numbers(out: Path | None) -> Path | None:
    """The same for the files of a report without a picture."""
    from elmokit.analysis.reports.report import check_stem

    return None if out is None else check_stem(out.expanduser())


def check_out(out: Path | None) -> Path | None:
    """The same for the files of a report, pictures among them."""
    if out is not None:
        check_plots()
    return check_numbers(out)


def check_out_folder(folder: Path | None) -> Path | None:
    """The same for a folder that gets pictures and is made where it is not there yet."""
    if folder is None:
        return None
    from elmokit.io.atomic import check_place

    check_plots()
    folder = folder.expanduser()
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise OutputError(f"cannot write into {folder}: {there} is a file; give another folder")
    check_place(there / "banks.png")
    return folder


def check_plots() -> None:
    """An error where pictures cannot be drawn."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "plots", "Pictures")


OutOption = Annotated[
    Path | None,
    typer.Option(
        help="Write OUT.json, OUT.csv, and the picture as OUT.png and OUT.svg.",
        callback=check_out,
    ),
]


def open_model(
    model: str | None,
    options_file: Path | None = None,
    weight_file: Path | None = None,
    tokenizer: str | None = None,
    device: str | None = None,
    quantize: str | None = None,
    tokenized: bool = False,
) -> Elmo:
    """The model a command was asked to use; where text is tokenised, it splits at white space."""
    if tokenized:
        check_tokenizer(tokenizer)
        tokenizer = "whitespace"
    from elmokit.elmo import Elmo

    return Elmo.load(
        model,
        options=options_file,
        weights=weight_file,
        tokenizer=tokenizer,
        device=device,
        quantize=quantize,
    )


def check_tokenizer(tokenizer: str | None) -> None:
    """An error where a tokenizer was chosen for text that is tokenised."""
    if tokenizer not in (None, "whitespace"):
        raise InputError("--tokenized means white space; leave out --tokenizer")


def kind_of_layers(elmo: Elmo) -> str:
    """What reads the sentence: LSTM or transformer."""
    return "LSTM" if elmo.config.context.kind == "lstm" else "transformer"


def layer_names(elmo: Elmo) -> list[str]:
    """Names of all layers for a table."""
    kind = kind_of_layers(elmo)
    return ["token layer", *(f"{kind} layer {k}" for k in range(1, elmo.n_layers))]


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on standard output; numbers to the right."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    many = len(columns) > 8  # they need the room
    table = Table(title=title or None, box=SIMPLE, title_justify="left", padding=(0, not many))
    for number, name in enumerate(columns):
        heading = name.replace(" ", "\n") if many else name
        table.add_column(
            heading,
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=many and number == 0,
        )
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def give(report: Report, out: Path | None, elmo: Elmo | None = None, **given: Any) -> None:
    """Print what an analysis found, and write it as :func:`save` does."""
    print_table(report.columns, report.shown(), report.title)
    save(report, out, elmo, **given)


def save(report: Report, out: Path | None, elmo: Elmo | None = None, **given: Any) -> None:
    """Write what an analysis found where it was asked for, and say so.

    Args:
        report: What was found.
        out: Beginning of the names of the files; None for none.
        elmo: The model, which is told of in the JSON file, and with it…
        **given: …texts, sentences and options by name.
    """
    if out is None:
        return
    if elmo is not None:
        from elmokit.analysis.reports.provenance import provenance

        # only now: the checksum of a large model takes a while
        report.about = provenance(elmo, **given) | report.about
    print("wrote " + ", ".join(str(path) for path in report.write(out)))
    for warning in report.warnings:
        print(f"elmokit: {warning}", file=sys.stderr)
