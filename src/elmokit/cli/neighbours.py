"""``elmokit neighbours``: where a text uses a word as a sentence does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import give, warn
from elmokit.cli.places import OutOption


@with_model(defaults={"model": "the model of the index", "tokenizer": "the index's own"})
def neighbours(
    index: Annotated[Path, typer.Argument(help="Folder written by elmokit index.")],
    sentence: Annotated[str, typer.Argument(help="A sentence.")],
    word: Annotated[str, typer.Option(help="A word of the sentence.")],
    model: ModelOptions,
    k: Annotated[int, typer.Option("-k", min=1, max=10_000, help="Number of neighbours.")] = 10,
    which: Annotated[
        int, typer.Option(min=1, help="Occurrence to use, if the word occurs several times.")
    ] = 1,
    same_word: Annotated[
        bool,
        typer.Option("--same-word", help="Compare with all occurrences of the same word only."),
    ] = False,
    brute: Annotated[
        bool,
        typer.Option("--brute", help="Search exactly: compare with every token, not by the graph."),
    ] = False,
    out: OutOption = None,
) -> None:
    """Print the tokens of an index nearest to a word in its sentence.

    On the left are the neighbours by the layer of the index, which depends on the context. On the
    right are those by the token layer, which does not.
    """
    from time import perf_counter

    from elmokit.analysis.index.neighbours import neighbours as find
    from elmokit.analysis.index.token_index import Index
    from elmokit.analysis.reports.neighbours_report import neighbours_report

    started = perf_counter()
    opened = Index.open(index)
    seconds = {"open": perf_counter() - started}
    if not model.is_given:
        model = replace(model, model=str(opened.config.find_model()))
    elmo = replace(model, tokenizer=model.tokenizer or opened.config.tokenizer).load()
    started = perf_counter()
    found = find(opened, elmo, sentence, word, k, which=which, same_word=same_word, brute=brute)
    seconds["first query"] = perf_counter() - started
    given = {"which": which, "same_word": same_word, "brute": brute}
    report = neighbours_report(found, seconds)
    give(report, out, elmo, index=index, sentence=sentence, k=k, **given)
    if not found.occurrences:
        what = f"occurrence of {found.tokens[found.position]!r}" if same_word else "token"
        warn(f"the indexed text has no other {what}")
