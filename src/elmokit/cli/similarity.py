"""``elmokit similarity``: a word in two sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    TokenizerOption,
    WeightFileOption,
    layer_names,
    open_model,
    print_table,
)


def similarity(
    first: Annotated[str, typer.Argument(help="A sentence.")],
    second: Annotated[str, typer.Argument(help="Another sentence.")],
    word: Annotated[
        str | None,
        typer.Option(help="A word or phrase in both; the whole sentences if left out."),
    ] = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Print how alike a word is in two sentences, layer by layer (cosine)."""
    from elmokit.analysis.similarity import sentence_similarity, word_similarity

    elmo = open_model(model, options_file, weight_file, tokenizer, device)
    names = layer_names(elmo)
    if word is None:
        rows = [("sentences", sentence_similarity(elmo, first, second))]
    else:
        pairs = word_similarity(elmo, first, second, word)
        rows = [(f"{word} {p.first + 1} ~ {word} {p.second + 1}", p.cosines) for p in pairs]
    print_table(["", *names], [[label, *(f"{c:.3f}" for c in row)] for label, row in rows])
    if word is not None:
        print("The number behind a word is its place in its sentence, in tokens from 1.")
