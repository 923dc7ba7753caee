"""Entry of the command line: the commands in their panels, global options, and error messages."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from elmokit._version import __version__
from elmokit.cli.change import change
from elmokit.cli.convert import convert
from elmokit.cli.demo import demo
from elmokit.cli.embed import embed
from elmokit.cli.evaluate import evaluate
from elmokit.cli.flags import in_flags
from elmokit.cli.geometry import geometry
from elmokit.cli.help import tidy
from elmokit.cli.index import index
from elmokit.cli.info import info
from elmokit.cli.neighbours import neighbours
from elmokit.cli.output import set_quiet, show_notes
from elmokit.cli.perplexity import perplexity
from elmokit.cli.perplexity_by import perplexity_by
from elmokit.cli.plan import plan
from elmokit.cli.predict import predict
from elmokit.cli.pretrain import pretrain
from elmokit.cli.probe import probe
from elmokit.cli.scatter import scatter
from elmokit.cli.serve import serve
from elmokit.cli.shards import shards
from elmokit.cli.similarity import similarity
from elmokit.cli.streams import STOPPED, StoppedError, fail, open_streams, unforeseen
from elmokit.cli.surprisal import surprisal
from elmokit.cli.train import train
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
    "Embed": [embed, similarity, shards, plan],
    "Understand": [
        surprisal, scatter, index, neighbours, geometry, change, perplexity_by, probe, wsd,
    ],
    "Tasks": [train, predict, evaluate],
    "Pretrain": [pretrain, perplexity],
    "Models": [info, convert, serve],
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
        typer.Option(
            min=1, max=1024, help="CPU threads.", show_default="as many as PyTorch chooses"
        ),
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


def _report_memory(error: MemoryError | RuntimeError) -> None:
    """Say that memory ran out; raise any other error again."""
    from elmokit.devices import is_out_of_memory

    if not is_out_of_memory(error):
        raise error
    fail("out of memory; give less text at once, or choose a smaller model or smaller batches")


def main() -> None:
    """Run the command line. A user's mistake prints one sentence and exits with 2."""
    open_streams()
    code = 2
    try:
        with warnings.catch_warnings():
            show_notes()
            code = app(prog_name="elmokit", standalone_mode=False) or 0
        if code == STOPPED:  # typer has caught Ctrl-C
            raise StoppedError("stopped")
        sys.stdout.flush()  # a full disk is noticed here, and not after the end
    except ElmoKitError as error:
        fail(in_flags(str(error), sys.argv[1:]))
    except (StoppedError, KeyboardInterrupt, typer.Abort) as stop:
        code = STOPPED
        fail(str(stop) or "stopped")
    except (MemoryError, RuntimeError) as error:  # after Abort, which is a RuntimeError
        _report_memory(error)
    except (OSError, SystemExit) as error:
        code = unforeseen(error)
    sys.exit(code)
