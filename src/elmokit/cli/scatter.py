"""``elmokit scatter``: a word in many sentences, as points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import give, layer_names
from elmokit.cli.places import OutOption


@with_model()
def scatter(
    model: ModelOptions,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="One sentence per line, with its sense and a tab in front or without.",
            show_default="two dozen sentences with two senses of bank",
        ),
    ] = None,
    word: Annotated[
        str | None, typer.Option(help="Word or phrase to compare; required with FILE.")
    ] = None,
    out: OutOption = None,
) -> None:
    """Show how well each layer separates the senses of a word.

    The silhouette, by cosine distance of the full vectors, is 1 if senses are far apart, and 0 or
    less if they overlap. The picture shows the first two principal components of each layer.
    """
    from elmokit.analysis.reports.scatter_report import scatter_report
    from elmokit.analysis.scatter import BANKS, find_occurrences, read_examples
    from elmokit.errors import InputError

    if word is None:
        if file is not None:
            raise InputError(f"give --word with a word that occurs in {file}")
        word = "bank"
    examples = read_examples(BANKS if file is None else file)
    elmo = model.load()
    found = find_occurrences(elmo, examples, word)
    report = scatter_report(word, found, layer_names(elmo))
    give(report, out, elmo, file="bundled sentences with bank" if file is None else file)
