"""``elmokit perplexity-by``: where in a sentence, and on which words, a model errs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OutOption,
    TokenizedOption,
    TokenizerOption,
    give,
    open_model,
)


def perplexity_by(
    text: Annotated[
        list[Path], typer.Argument(help="Text files or folders: plain, .gz, .xz or .zst.")
    ],
    max_tokens: Annotated[
        int | None, typer.Option(help="Stop after so many tokens; the whole text if left out.")
    ] = None,
    tokenized: TokenizedOption = False,
    out: OutOption = None,
    model: ModelOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Perplexity by position in the sentence and by frequency of the word, forward and backward.

    Positions count from the beginning of the sentence for both directions. Ranks are places in the
    model's vocabulary, which begins with the most frequent words.
    """
    from elmokit.analysis.bands import banded_perplexity, bands_report
    from elmokit.analysis.texts import read_sentences

    elmo = open_model(model, tokenizer=tokenizer, device=device)
    found = banded_perplexity(elmo, read_sentences(elmo, text, tokenized), max_tokens)
    give(bands_report(found), out)
