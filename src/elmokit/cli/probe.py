"""``elmokit probe``: what linear classifiers find in the layers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, SeedOption, with_model
from elmokit.cli.output import give
from elmokit.cli.places import OutOption

probe = typer.Typer(
    name="probe",
    no_args_is_help=True,
    help="Train linear classifiers on each layer's vectors.",
)


@probe.command()
@with_model(leave_out=("tokenizer",))
def pos(
    train: Annotated[Path, typer.Argument(help="CoNLL-U or other CoNLL file to train on.")],
    dev: Annotated[Path, typer.Argument(help="CoNLL file to test on; not used in training.")],
    model: ModelOptions,
    column: Annotated[
        str, typer.Option(help="Column of the tags: upos, xpos, deprel…, or a number from 1.")
    ] = "upos",
    word_column: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Column of the words.",
            show_default="2 if lines start with a number, else 1",
        ),
    ] = None,
    max_sentences: Annotated[
        int | None,
        typer.Option(min=2, help="Maximum sentences per file; more are sampled at random."),
    ] = None,
    seed: SeedOption = 0,
    out: OutOption = None,
) -> None:
    """Print how well a linear classifier predicts parts of speech, or other tags, per layer.

    Next to it is the control task of Hewitt and Liang (2019), in which each word has a random tag
    that can only be memorised. Selectivity is the difference. A tenth of TRAIN is held out to
    decide when to stop.
    """
    from elmokit.analysis.probes.probing import probe as run_probe
    from elmokit.analysis.probes.probing import sample
    from elmokit.io.conll import read_conll

    known, asked = (
        sample(read_conll(path, column, word_column), max_sentences, seed) for path in (train, dev)
    )
    elmo = model.load()
    result = run_probe(elmo, known, asked, seed)
    report = result.report()
    given = {"column": column, "word_column": word_column, "max_sentences": max_sentences}
    give(report, out, elmo, train=train, dev=dev, **given, seed=seed)
