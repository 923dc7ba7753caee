"""``elmokit perplexity-by``: where in a sentence, and on which words, a model errs."""

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


def perplexity_by(
    text: Annotated[
        list[Path], typer.Argument(help="Text files or folders: plain, .gz, .xz or .zst.")
    ],
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens; the whole text if left out.")
    ] = None,
    tokenized: TokenizedOption = False,
    out: OutOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Perplexity by position in the sentence and by frequency of the word, forward and backward.

    Positions count from the beginning of the sentence for both directions. Ranks are places in the
    model's vocabulary, which begins with the most frequent words.
    """
    from elmokit.analysis.perplexity_bands import bands_report, perplexity_of_text

    elmo = open_model(model, options_file, weight_file, tokenizer, device, tokenized=tokenized)
    found = perplexity_of_text(elmo, text, max_tokens, tokenized)
    give(bands_report(found), out, elmo, text=text, max_tokens=max_tokens, tokenized=tokenized)
