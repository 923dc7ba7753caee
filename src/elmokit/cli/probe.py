"""``elmokit probe``: what linear classifiers find in the layers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    OutOption,
    WeightFileOption,
    give,
    layer_names,
    open_model,
)

probe = typer.Typer(
    name="probe",
    no_args_is_help=True,
    help="What linear classifiers find in each layer's vectors.",
)


@probe.command()
def pos(
    train: Annotated[Path, typer.Argument(help="CoNLL-U or other CoNLL file to train on.")],
    dev: Annotated[Path, typer.Argument(help="The same to test; it has no part in training.")],
    column: Annotated[
        str, typer.Option(help="Where the tags are: upos, xpos, deprel…, or a number from 1.")
    ] = "upos",
    word_column: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Where the words are; 2 where lines begin with numbers, else 1, if left out.",
        ),
    ] = None,
    max_sentences: Annotated[
        int | None, typer.Option(min=2, help="Most sentences of each file, drawn by chance.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=1 << 62, help="The same seed, the same numbers.")
    ] = 0,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    device: DeviceOption = None,
    out: OutOption = None,
) -> None:
    """Print how well one linear layer tells parts of speech, or other tags, layer by layer.

    Beside it the control task of Hewitt and Liang (2019): each word has a random tag, which only
    memory can give. Selectivity is the difference. A tenth of TRAIN decides when to stop.
    """
    from elmokit.analysis.probes.conll import read_conll
    from elmokit.analysis.probes.probing import probe as run_probe
    from elmokit.analysis.probes.probing import probe_report, sample

    known, asked = (
        sample(read_conll(path, column, word_column), max_sentences, seed) for path in (train, dev)
    )
    elmo = open_model(model, options_file, weight_file, device=device)
    result = run_probe(elmo, known, asked, seed)
    report = probe_report(result, layer_names(elmo))
    given = {"column": column, "word_column": word_column, "max_sentences": max_sentences}
    give(report, out, elmo, train=train, dev=dev, **given, seed=seed)
