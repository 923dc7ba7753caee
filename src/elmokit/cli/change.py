"""``elmokit change``: words that mean something else in another text."""

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


def change(
    old: Annotated[Path, typer.Argument(help="Text file or folder: plain, .gz, .xz or .zst.")],
    new: Annotated[Path, typer.Argument(help="The same, to compare it with.")],
    words: Annotated[str, typer.Option(help="Words or phrases, apart by commas.")],
    layer: Annotated[
        str,
        typer.Option(help="top (which tells senses apart best), average, mix, or a number from 0."),
    ] = "top",
    most: Annotated[
        int, typer.Option(min=5, help="Most occurrences of a word in a text, drawn by chance.")
    ] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same numbers.")] = 0,
    tokenized: TokenizedOption = False,
    tokenizer: TokenizerOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    device: DeviceOption = None,
    out: OutOption = None,
) -> None:
    """Print how far words differ in meaning between two texts, the most changed first.

    PRT is the cosine distance of a word's mean vectors in the two texts, corrected for what few
    occurrences add to it; APD is the mean distance of the occurrences. Both have a 95% interval. A
    PRT below "PRT chance" may be mere chance.
    """
    from elmokit.analysis.change import change as compare
    from elmokit.analysis.change import change_report

    elmo = open_model(model, options_file, weight_file, tokenizer, device, tokenized=tokenized)
    found = compare(
        elmo,
        old,
        new,
        [word.strip() for word in words.split(",")],
        layer=int(layer) if layer.removeprefix("-").isdecimal() else layer,
        most=most,
        tokenized=tokenized,
        seed=seed,
    )
    report = change_report(found, (old.name, new.name))
    given = {"layer": layer, "most": most, "tokenized": tokenized, "seed": seed}
    give(report, out, elmo, old=old, new=new, **given)
