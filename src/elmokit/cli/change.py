"""``elmokit change``: words whose meaning differs between two texts."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, SeedOption, TextArgument, TokenizedOption, with_model
from elmokit.cli.output import give
from elmokit.cli.places import OutOption


@with_model()
def change(
    old: TextArgument,
    new: TextArgument,
    words: Annotated[str, typer.Option(help="Words or phrases, separated by commas.")],
    model: ModelOptions,
    layer: Annotated[
        str,
        typer.Option(
            help="top (separates senses best), average, mix, or the number of a layer (0: token "
            "layer)."
        ),
    ] = "top",
    most: Annotated[
        int,
        typer.Option(
            min=5,
            max=10_000,  # the memory for resamples grows with it
            help="Maximum occurrences of a word per text; more are sampled at random.",
        ),
    ] = 500,
    seed: SeedOption = 0,
    tokenized: TokenizedOption = False,
    out: OutOption = None,
) -> None:
    """Print how far words differ in meaning between two texts, the most changed first.

    PRT is the cosine distance between a word's mean vectors in the two texts, corrected for small
    numbers of occurrences. APD is the mean distance between occurrences. Both have a 95% interval.
    A PRT below "PRT chance" may be due to chance.
    """
    from elmokit.analysis.change import change as compare

    elmo = model.load(tokenized)
    found = compare(
        elmo,
        old,
        new,
        [word.strip() for word in re.split("[,，、]", words)],
        layer=int(layer) if layer.removeprefix("-").isdecimal() else layer,
        most=most,
        tokenized=tokenized,
        seed=seed,
    )
    report = found.report()
    given = {"layer": layer, "most": most, "tokenized": tokenized, "seed": seed}
    give(report, out, elmo, old=old, new=new, **given)
