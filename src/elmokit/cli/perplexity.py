"""``elmokit perplexity``: how well a model predicts a text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, MostTokens, TextsArgument, TokenizedOption, with_model


@with_model()
def perplexity(
    text: TextsArgument,
    model: ModelOptions,
    max_tokens: MostTokens = None,
    tokenized: TokenizedOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print perplexity on a text, with the full softmax and each sentence alone.

    The model needs a softmax. If it is the folder of a run that was trained on tokenised text, the
    text is read as tokenised too, unless --tokenizer is given.
    """
    from elmokit.analysis.text_perplexity import perplexity_of_files, reads_tokenized

    if model.model is not None and model.tokenizer is None:
        tokenized = tokenized or reads_tokenized(model.model)
    elmo = model.load(tokenized)
    found = perplexity_of_files(elmo, text, tokenized=tokenized, max_tokens=max_tokens)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    print(f"tokens               {found.n_tokens:,} in {found.n_sentences:,} sentences")
    print(f"unknown              {found.unknown_rate:.2%}")
    print(f"perplexity forward   {found.forward:.2f}")
    if found.backward is not None:
        print(f"perplexity backward  {found.backward:.2f}")
    print(f"perplexity mean      {found.mean:.2f}")
    print(f"bits per character   {found.bits_per_character:.3f}")
