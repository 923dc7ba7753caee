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
    names = layer_names(elmo.n_layers)
    if word is None:
        columns = ["layer", "sentences"]
        cosines = [sentence_similarity(elmo, first, second)]
    else:
        pairs = word_similarity(elmo, first, second, word)
        columns = ["layer", *(f"{word} {p.first + 1} ~ {word} {p.second + 1}" for p in pairs)]
        cosines = [pair.cosines for pair in pairs]
    rows = [[name, *(f"{c[k]:.3f}" for c in cosines)] for k, name in enumerate(names)]
    print_table(columns, rows)
    if word is not None:
        print("The number behind a word is its place in its sentence, in tokens from 1.")
