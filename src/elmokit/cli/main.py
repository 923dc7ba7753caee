"""Entry of the command line: the commands, and one way to report errors."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated

import typer

from elmokit._version import __version__
from elmokit.cli.change import change
from elmokit.cli.convert import convert
from elmokit.cli.demo import demo
from elmokit.cli.embed import embed
from elmokit.cli.evaluate import evaluate
from elmokit.cli.geometry import geometry
from elmokit.cli.index import index
from elmokit.cli.info import info
from elmokit.cli.neighbours import neighbours
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
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo, embed, similarity, scatter, surprisal, index, neighbours, geometry, change, info, convert,
    pretrain, evaluate, perplexity_by,
):  # fmt: skip
    app.command()(command)
app.add_typer(probe)
app.add_typer(wsd)
for group in (app, probe, wsd):
    for entry in group.registered_commands:  # lines end where the terminal does
        paragraphs = (inspect.getdoc(entry.callback) or "").split("\n\n")
        entry.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"elmokit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """ELMo, today: contextual word vectors from any published ELMo model."""


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2."""
    try:
        app()
    except ElmoKitError as error:
        print(f"elmokit: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # of a kind nobody thought of; still no reason for a traceback
        print(f"elmokit: {error}", file=sys.stderr)
        sys.exit(2)
