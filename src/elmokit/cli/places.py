"""Places for results: the option ``--out``, and checks that run before the work starts.

Typer calls the checks as it reads the options. They raise errors of ElmoKit, which are printed as
one sentence; typer's own checks would print a box.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.mistakes import expanded
from elmokit.errors import MissingExtraError, OutputError


def check_file(path: Path | None) -> Path | None:
    """Check that a file can be written."""
    from elmokit.io.atomic import check_place

    if path is None:
        return None
    path = expanded(path)
    check_place(path)
    return path


def check_numbers(out: Path | None) -> Path | None:
    """Check that the files of a report without a picture can be written."""
    from elmokit.analysis.reports.report import check_stem

    return None if out is None else check_stem(expanded(out))


def check_out(out: Path | None) -> Path | None:
    """Check that the files of a report with a picture can be written."""
    if out is not None:
        check_plots()
    return check_numbers(out)


def check_out_folder(folder: Path | None) -> Path | None:
    """Check that pictures can be written into a folder, which need not exist yet."""
    if folder is None:
        return None
    from elmokit.io.atomic import check_place

    check_plots()
    folder = expanded(folder)
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise OutputError(f"cannot write into {folder}: {nearest} is a file; give another folder")
    check_place(nearest / "banks.png")
    return folder


def check_plots() -> None:
    """Raise if matplotlib is missing."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "plots", "Pictures")


OutOption = Annotated[
    Path | None,
    typer.Option(
        help="Write OUT.json and OUT.csv, and the picture as OUT.png and OUT.svg.",
        callback=check_out,
    ),
]
NumbersOption = Annotated[
    Path | None, typer.Option(help="Write OUT.json and OUT.csv.", callback=check_numbers)
]
