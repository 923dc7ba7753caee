"""``elmokit scatter``: a word in many sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    OutOption,
    TokenizerOption,
    WeightFileOption,
    give,
    layer_names,
    open_model,
)


def scatter(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Lines of a sense, a tab and a sentence, or of sentences alone; two dozen "
            "sentences with two kinds of banks if left out."
        ),
    ] = None,
    word: Annotated[
        str | None, typer.Option(help="The word or phrase; bank where FILE is left out.")
    ] = None,
    out: OutOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Show how far a word's senses lie apart in each layer.

    The silhouette, by cosine distance of the whole vectors, is 1 where senses are far apart, and 0
    or less where they are not; the picture shows each layer's first two principal components.
    """
    from elmokit.analysis.reports.scatter_report import scatter_report
    from elmokit.analysis.scatter import BANKS, find_occurrences, read_examples
    from elmokit.errors import InputError

    if word is None:
        if file is not None:
            raise InputError(f"say with --word which word of {file} is meant")
        word = "bank"
    examples = read_examples(BANKS if file is None else file)
    elmo = open_model(model, options_file, weight_file, tokenizer, device)
    found = find_occurrences(elmo, examples, word)
    report = scatter_report(word, found, layer_names(elmo))
    give(report, out, elmo, file="the banks of the package" if file is None else file)
