"""``elmokit evaluate``: how well a model predicts a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import DeviceOption, TokenizedOption


def evaluate(
    model: Annotated[str, typer.Argument(help="A run's folder, or any model with a softmax.")],
    text: Annotated[
        list[Path], typer.Argument(help="Text files or folders: plain, .gz, .xz or .zst.")
    ],
    tokenized: TokenizedOption = False,
    tokenizer: Annotated[
        str | None, typer.Option(help="The run's or model's own if left out.")
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Perplexity by the whole softmax, each sentence alone: forward, backward and mean."""
    from elmokit.pretrain.score import evaluate_model

    found = evaluate_model(model, text, tokenizer, tokenized, device)
    print(f"tokens               {found.n_tokens:,} in {found.n_sentences:,} sentences")
    print(f"unknown              {found.unknown_rate:.2%}")
    print(f"perplexity forward   {found.forward:.2f}")
    if found.backward is not None:
        print(f"perplexity backward  {found.backward:.2f}")
    print(f"perplexity mean      {found.mean:.2f}")
    print(f"bits per character   {found.bits_per_character:.3f}")
