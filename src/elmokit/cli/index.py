"""``elmokit index``: the vectors of a text, to be searched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    QuantizeOption,
    TokenizedOption,
    TokenizerOption,
    WeightFileOption,
    open_model,
)


def index(
    text: Annotated[
        list[Path], typer.Argument(help="Text files or folders: plain, .gz, .xz or .zst.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    layer: Annotated[
        int | None, typer.Option(min=0, help="Whose vectors (0: token layer); the top if left out.")
    ] = None,
    tokenized: TokenizedOption = False,
    tokenizer: TokenizerOption = None,
    most_per_word: Annotated[
        int,
        typer.Option(
            min=0,
            help="Most occurrences of a word that can be found, spread evenly over the text, so "
            "that 'the' does not fill the index; 0 for all.",
        ),
    ] = 2000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was stopped.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard what a stopped run left.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the index if it is there.")] = (
        False
    ),
    quantize: QuantizeOption = None,
    device: DeviceOption = None,
) -> None:
    """Embed running text, and write an index in which elmokit neighbours searches."""
    from elmokit.analysis.index.build import IndexOptions, build_index
    from elmokit.io.job import spool_folder
    from elmokit.io.lines import find_files

    find_files(text)  # before the model is loaded, which takes longer
    options = IndexOptions(layer, tokenized, most_per_word, resume, restart, force)
    out = out.expanduser()
    elmo = open_model(model, options_file, weight_file, tokenizer, device, quantize, tokenized)
    try:
        done = build_index(elmo, text, out, options)
    except KeyboardInterrupt:
        kept = spool_folder(out).exists()
        hint = "; add --resume to the same command to continue" if kept else ""
        print(f"\nelmokit: stopped{hint}", file=sys.stderr)
        raise typer.Exit(130) from None
    found = done.config
    resumed = f" ({done.resumed:,} from the run before)" if done.resumed else ""
    print(
        f"{out}: {found.sentences:,} sentences{resumed}, {found.tokens:,} tokens, {found.rows:,} "
        f"of them in the graph, {done.bytes / 1e6:,.1f} MB, model {done.model_seconds:,.1f} s, "
        f"graph {done.graph_seconds:,.1f} s"
    )
