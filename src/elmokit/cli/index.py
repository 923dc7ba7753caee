"""``elmokit index``: a searchable index of every token's vector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.mistakes import expanded
from elmokit.cli.options import (
    ModelOptions,
    OptionalTextsArgument,
    RestartOption,
    ResumeOption,
    TokenizedOption,
    with_model,
)
from elmokit.cli.output import resumable, resumed_note, say
from elmokit.errors import InputError


@with_model()
def index(
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    model: ModelOptions,
    text: OptionalTextsArgument = None,
    from_shards: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Take the vectors from a folder of elmokit embed --engine, instead of a text.",
        ),
    ] = None,
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
    if (from_shards is None) == (not text):
        raise InputError("give either text to index, or the folder of its shards as --from")
    if from_shards is not None and tokenized:
        raise InputError("the sentences of --from are tokenized already; leave out --tokenized")

    from elmokit.analysis.index.build import IndexOptions, build_index
    from elmokit.cluster.shard_index import index_shards

    options = IndexOptions(layer, tokenized, most_per_word, resume, restart, force)
    out = expanded(out)
    elmo = model.load(tokenized)
    with resumable(out):
        if from_shards is not None:
            done = index_shards(elmo, from_shards, out, options, say)
        else:
            done = build_index(elmo, text or [], out, options, say)
    found = done.config
    say(
        f"{out}: {found.sentences:,} sentences{resumed_note(done.resumed)}, {found.tokens:,} "
        f"tokens, {found.rows:,} of them in the graph, {done.bytes / 1e6:,.1f} MB, model "
        f"{done.model_seconds:,.1f} s, graph {done.graph_seconds:,.1f} s"
    )
