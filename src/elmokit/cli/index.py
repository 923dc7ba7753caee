"""``elmokit index``: a searchable index of every token's vector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.mistakes import expanded
from elmokit.cli.options import (
    ModelOptions,
    RestartOption,
    ResumeOption,
    TextsArgument,
    TokenizedOption,
    with_model,
)
from elmokit.cli.output import resumable, resumed_note, say


@with_model()
def index(
    text: TextsArgument,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    model: ModelOptions,
    layer: Annotated[
        int | None,
        typer.Option(min=0, help="Layer to index (0: token layer).", show_default="the top layer"),
    ] = None,
    tokenized: TokenizedOption = False,
    most_per_word: Annotated[
        int,
        typer.Option(
            min=0,
            help="Maximum occurrences of a word in the index, spread evenly over the text; 0 keeps "
            "all. The limit keeps words like 'the' from filling the index.",
        ),
    ] = 2000,
    resume: ResumeOption = False,
    restart: RestartOption = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing index.")] = False,
) -> None:
    """Index the vectors of every token in a text, for elmokit neighbours."""
    from elmokit.analysis.index.build import IndexOptions, build_index

    options = IndexOptions(layer, tokenized, most_per_word, resume, restart, force)
    out = expanded(out)
    elmo = model.load(tokenized)
    with resumable(out):
        done = build_index(elmo, text, out, options, say)
    found = done.config
    say(
        f"{out}: {found.sentences:,} sentences{resumed_note(done.resumed)}, {found.tokens:,} "
        f"tokens, {found.rows:,} of them in the graph, {done.bytes / 1e6:,.1f} MB, model "
        f"{done.model_seconds:,.1f} s, graph {done.graph_seconds:,.1f} s"
    )
