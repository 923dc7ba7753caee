"""Entry of the command line: the commands in their panels, global options, and error messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from elmokit._version import __version__
from elmokit.cli.change import change
from elmokit.cli.convert import convert
from elmokit.cli.demo import demo
from elmokit.cli.embed import embed
from elmokit.cli.flags import in_flags
from elmokit.cli.geometry import geometry
from elmokit.cli.help import tidy
from elmokit.cli.index import index
from elmokit.cli.info import info
from elmokit.cli.neighbours import neighbours
from elmokit.cli.output import set_quiet
from elmokit.cli.perplexity import perplexity
from elmokit.cli.perplexity_by import perplexity_by
from elmokit.cli.pretrain import pretrain
from elmokit.cli.probe import probe
from elmokit.cli.scatter import scatter
from elmokit.cli.similarity import similarity
from elmokit.cli.surprisal import surprisal
from elmokit.cli.wsd import wsd
from elmokit.errors import ElmoKitError

app = typer.Typer(
    name="elmokit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PANELS: dict[str, list[Callable[..., None] | typer.Typer]] = {
    "Start here": [demo],
    "Embed": [embed, similarity],
    "Understand": [
        surprisal, scatter, index, neighbours, geometry, change, perplexity_by, probe, wsd,
    ],
    "Train": [pretrain, perplexity],
    "Models": [info, convert],
}  # fmt: skip
for panel, commands in PANELS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=panel)
        else:
            app.command(rich_help_panel=panel)(command)
tidy(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"elmokit {__version__}")
        raise typer.Exit


def _set_threads(threads: int | None) -> None:
    if threads is None:
        return
    os.environ["OMP_NUM_THREADS"] = str(threads)  # also reaches processes started later
    import torch

    torch.set_num_threads(threads)


@app.callback()
def options(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print results and errors only.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="CPU threads.", show_default="as many as PyTorch chooses"),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Contextual word vectors from published ELMo models, and training of your own.

    Options of this page go before the command: elmokit --quiet embed …
    """
    set_quiet(quiet)
    _set_threads(threads)


def main() -> None:
    """Run the command line. A user's mistake prints one sentence and exits with 2."""
    try:
        app(prog_name="elmokit")
    except ElmoKitError as error:
        print(f"elmokit: {in_flags(str(error), sys.argv[1:])}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # not foreseen, but a traceback would not help the user
        print(f"elmokit: {error}", file=sys.stderr)
        sys.exit(2)
