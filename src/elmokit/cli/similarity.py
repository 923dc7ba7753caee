"""``elmokit similarity``: a word in two sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    OutOption,
    TokenizerOption,
    WeightFileOption,
    layer_names,
    open_model,
    print_table,
    save,
)


def similarity(
    first: Annotated[str, typer.Argument(help="A sentence.")],
    second: Annotated[str, typer.Argument(help="Another sentence.")],
    word: Annotated[
        str | None,
        typer.Option(help="A word or phrase in both; the whole sentences if left out."),
    ] = None,
    out: OutOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Print how alike a word is in two sentences, layer by layer (cosine).

    With --out, the picture has bars for a word, and for whole sentences a heat map of all their
    tokens.
    """
    from elmokit.analysis.reports.similarity_report import heat_map_report, word_report
    from elmokit.analysis.similarity import sentence_similarity, token_pairs, word_similarity

    elmo = open_model(model, options_file, weight_file, tokenizer, device)
    names = layer_names(elmo)
    if word is None:
        pairs = None if out is None else token_pairs(elmo, first, second)
        cosines = sentence_similarity(elmo, first, second)
        print_table(["", *names], [["sentences", *(f"{c:.3f}" for c in cosines)]])
        if pairs is not None:
            save(heat_map_report(pairs, names), out, elmo, sentences=[first, second])
    else:
        report = word_report(word, word_similarity(elmo, first, second, word), names)
        print_table(["", *names], report.shown())
        print("The number behind a word is its place in its sentence, in tokens from 1.")
        save(report, out, elmo, sentences=[first, second])
