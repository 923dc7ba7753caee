"""``elmokit geometry``: how contextual each layer's vectors are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    OutOption,
    TokenizedOption,
    TokenizerOption,
    WeightFileOption,
    give,
    open_model,
)


def geometry(
    text: Annotated[Path, typer.Argument(help="Text file or folder: plain, .gz, .xz or .zst.")],
    max_tokens: Annotated[
        int, typer.Option(min=2, help="Most tokens, of paragraphs drawn by chance.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same numbers.")] = 0,
    tokenized: TokenizedOption = False,
    tokenizer: TokenizerOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    device: DeviceOption = None,
    out: OutOption = None,
) -> None:
    """Print how alike vectors are, of different words, of a word, and within sentences.

    The measures of Ethayarajh (2019) for each layer, with his figures beside them: anisotropy,
    self-similarity, intra-sentence similarity, and how much of a word one static vector would be.
    Words are counted that stand in five sentences or more.
    """
    from elmokit.analysis.geometry import geometry as measure
    from elmokit.analysis.geometry import geometry_report
    from elmokit.analysis.texts import sample_sentences

    elmo = open_model(model, options_file, weight_file, tokenizer, device, tokenized=tokenized)
    sentences = sample_sentences(elmo, text, max_tokens, tokenized, seed)
    report = geometry_report(measure(elmo, sentences, seed))
    give(report, out, elmo, text=text, max_tokens=max_tokens, tokenized=tokenized, seed=seed)
