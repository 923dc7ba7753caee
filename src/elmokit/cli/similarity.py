"""``elmokit similarity``: cosine similarity of a word in two contexts."""

from __future__ import annotations

from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import print_notes, print_table, save, say, warn
from elmokit.cli.places import OutOption


@with_model()
def similarity(
    first: Annotated[str, typer.Argument(help="A sentence.")],
    second: Annotated[str, typer.Argument(help="Another sentence.")],
    model: ModelOptions,
    word: Annotated[
        str | None,
        typer.Option(
            help="Word or phrase that occurs in both.", show_default="compare whole sentences"
        ),
    ] = None,
    out: OutOption = None,
) -> None:
    """Print the cosine similarity of a word in two contexts, or of two sentences, per layer.

    Of a word that occurs more than 20 times in a sentence, the first 20 occurrences are compared.

    The picture of --out has bars for a word, and a heat map of all tokens for whole sentences.
    """
    from elmokit.analysis.reports.report import fixed
    from elmokit.analysis.similarity import sentence_similarity, token_pairs, word_similarity

    elmo = model.load()
    names = elmo.layer_names
    if word is None:
        pairs = None if out is None else token_pairs(elmo, first, second)
        cosines = sentence_similarity(elmo, first, second)
        print_table(["", *names], [["sentences", *map(fixed, cosines)]])
        if pairs is not None:
            save(pairs.report(), out, elmo, sentences=[first, second])
    else:
        found = word_similarity(elmo, first, second, word)
        report = found.report()
        print_table(["", *names], report.shown())
        print_notes(report)
        if found.left_out:
            warn(found.left_out)
        say("The number after a word is its position in the sentence, counting tokens from 1.")
        save(report, out, elmo, sentences=[first, second])
