"""What commands print: tables, messages, and the names of the files they wrote."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.cli.streams import StoppedError
from elmokit.errors import DataWarning, LanguageWarning

if TYPE_CHECKING:
    from elmokit.analysis.reports.report import Report
    from elmokit.elmo import Elmo

_MOST_ROWS = 2000  # of a table in the terminal; rich takes a second for so many

_quiet = False


def set_quiet(quiet: bool) -> None:
    """Turn messages and progress bars off or on. Results and errors are printed either way."""
    from elmokit.io import progress

    global _quiet
    _quiet = quiet
    progress.enabled = not quiet


def say(message: str) -> None:
    """Print a message about the work; a result is printed with ``print``."""
    if not _quiet:
        print(message)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    if not _quiet:
        print(f"elmokit: {message}", file=sys.stderr)


def show_notes() -> None:
    """Print the library's own warnings as messages, without a place in the code."""
    python_shows, notes = warnings.showwarning, (LanguageWarning, DataWarning)

    def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
        if issubclass(category, notes):
            warn(str(message))
        else:
            python_shows(message, category, *place, **more)

    for category in notes:
        warnings.simplefilter("always", category)
    warnings.showwarning = show


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """On Ctrl-C, name --resume if there is something to resume.

    Args:
        output: What the command writes.
    """
    from elmokit.io.job import has_partial

    try:
        yield
    except KeyboardInterrupt:
        hint = "; add --resume to the same command to continue" if has_partial(output) else ""
        raise StoppedError(f"stopped{hint}") from None


def resumed_note(n: int) -> str:
    """How many sentences a stopped run had already done, in parentheses."""
    return f" ({n:,} from the stopped run)" if n else ""


def kind_of_layers(elmo: Elmo) -> str:
    """The layers above the token layer: LSTM or transformer."""
    return elmo.config.context.label


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table on standard output, with numbers aligned to the right."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    many = len(columns) > 8  # save width
    table = Table(title=title or None, box=SIMPLE, title_justify="left", padding=(0, not many))
    for number, name in enumerate(columns):
        heading = name.replace(" ", "\n") if many else name
        table.add_column(
            heading,
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=many and number == 0,
        )
    for row in rows[:_MOST_ROWS]:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
    if len(rows) > _MOST_ROWS:
        print(f"… and {len(rows) - _MOST_ROWS:,} more rows; --out writes all of them")


def give(report: Report, out: Path | None, elmo: Elmo | None = None, **given: Any) -> None:
    """Print a report, and write its files as :func:`save` does."""
    print_table(report.columns, report.shown(), report.title)
    print_notes(report)
    save(report, out, elmo, **given)


def print_notes(report: Report) -> None:
    """Print a report's notes on standard error."""
    for note in report.notes:
        warn(note)


def save(report: Report, out: Path | None, elmo: Elmo | None = None, **given: Any) -> None:
    """Write a report's files, and print their names.

    Args:
        report: The report.
        out: Start of the file names; None writes nothing.
        elmo: The model, which the JSON file describes.
        **given: Texts, sentences and options by name, for the JSON file.
    """
    if out is None:
        return
    if elmo is not None:
        from elmokit.analysis.reports.provenance import provenance

        # only if a file is written: the checksum of a large model takes a while
        report.about = provenance(elmo, **given) | report.about
    say("wrote " + ", ".join(str(path) for path in report.write(out)))
    for warning in report.warnings:
        warn(warning)
