"""``elmokit neighbours``: where a text uses a word as a sentence does."""

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
    open_model,
)


def neighbours(
    index: Annotated[Path, typer.Argument(help="Folder that elmokit index wrote.")],
    sentence: Annotated[str, typer.Argument(help="A sentence.")],
    word: Annotated[str, typer.Option(help="A word of it.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many neighbours.")] = 10,
    which: Annotated[
        int, typer.Option(min=1, help="Which one, where the word is there several times.")
    ] = 1,
    same_word: Annotated[
        bool,
        typer.Option("--same-word", help="Occurrences of the word itself only, and all of them."),
    ] = False,
    brute: Annotated[
        bool, typer.Option("--brute", help="Compare with everything, exactly, without the graph.")
    ] = False,
    out: OutOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Print the occurrences in a text nearest to a word in its sentence, and the nearest words.

    On the left, what the layer of the index finds, in context; on the right, what the token layer
    finds, which knows of none. The model and the tokenizer are those of the index if left out.
    """
    from time import perf_counter

    from elmokit.analysis.index.neighbours import neighbours as find
    from elmokit.analysis.index.neighbours import report
    from elmokit.analysis.index.token_index import Index

    started = perf_counter()
    opened = Index.open(index)
    seconds = {"open": perf_counter() - started}
    if model is None and options_file is None and weight_file is None:
        model = str(opened.config.find_model())
    tokenizer = tokenizer or opened.config.tokenizer
    elmo = open_model(model, options_file, weight_file, tokenizer, device)
    started = perf_counter()
    found = find(opened, elmo, sentence, word, k, which=which, same_word=same_word, brute=brute)
    seconds["first query"] = perf_counter() - started
    given = {"which": which, "same_word": same_word, "brute": brute}
    give(report(opened, found, seconds), out, elmo, index=index, sentence=sentence, k=k, **given)
