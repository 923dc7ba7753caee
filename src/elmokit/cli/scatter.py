"""``elmokit scatter``: a word in many sentences, as points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import give
from elmokit.cli.places import OutOption


@with_model()
def scatter(
    model: ModelOptions,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="One sentence per line, with its sense and a tab in front or without.",
            show_default="bundled sentences with the word",
        ),
    ] = None,
    word: Annotated[
        str | None,
        typer.Option(
            help=(
                "Word or phrase to compare; required with FILE. Bundled: bank, 苹果, 元素, 组织, "
                "单位."
            ),
            show_default="bank; 苹果 if the tokenizer is chinese",
        ),
    ] = None,
    out: OutOption = None,
) -> None:
    """Show how well each layer separates the senses of a word.

    The silhouette, by cosine distance of the full vectors, is 1 if senses are far apart, and 0 or
    less if they overlap. The picture shows the first two principal components of each layer.
    """
    from elmokit.analysis.scatter import bundled_examples, find_occurrences, read_examples
    from elmokit.errors import InputError

    if file is not None:
        if word is None:
            raise InputError(f"give --word with a word that occurs in {file}")
        examples = read_examples(file)
    elif word is not None:
        examples = bundled_examples(word)
    elmo = model.load()
    if word is None:
        word = "苹果" if elmo.tokenizer.name == "chinese" else "bank"
        examples = bundled_examples(word)
    found = find_occurrences(elmo, examples, word)
    give(found.report(), out, elmo, file=f"bundled sentences with {word}" if file is None else file)
