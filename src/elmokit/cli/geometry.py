"""``elmokit geometry``: how contextual each layer's vectors are."""

from __future__ import annotations

from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, SeedOption, TextArgument, TokenizedOption, with_model
from elmokit.cli.output import give
from elmokit.cli.places import OutOption


@with_model()
def geometry(
    text: TextArgument,
    model: ModelOptions,
    max_tokens: Annotated[
        int, typer.Option(min=2, help="Maximum tokens, from paragraphs sampled at random.")
    ] = 100_000,
    seed: SeedOption = 0,
    tokenized: TokenizedOption = False,
    out: OutOption = None,
) -> None:
    """Print how contextual each layer is: similarity between words, uses and sentences.

    The measures of Ethayarajh (2019) for each layer, next to his figures: anisotropy,
    self-similarity, intra-sentence similarity, and the maximum explainable variance (MEV): how much
    of a word's occurrences one static vector explains. Rows with "adj" are adjusted for anisotropy.
    Words count if they occur in at least five sentences.
    """
    from elmokit.analysis.geometry import geometry as measure
    from elmokit.analysis.texts import sample_sentences

    elmo = model.load(tokenized)
    sentences = sample_sentences(elmo, text, max_tokens, tokenized, seed)
    report = measure(elmo, sentences, seed).report()
    give(report, out, elmo, text=text, max_tokens=max_tokens, tokenized=tokenized, seed=seed)
