"""Pairs of texts with a score of their similarity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elmokit.tasks.readers.examples import PairExample
from elmokit.tasks.readers.records import Source
from elmokit.tasks.readers.rows import Wanted, read_rows

COLUMNS = Wanted(("first", "second"), "score", {2: ("first", "second")})


def read_pair_examples(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    labelled: bool = True,
    tokenized: bool = False,
) -> list[PairExample]:
    """Read pairs of texts.

    Args:
        path: A TSV, CSV or JSONL file with the columns first, second and score. A file of another
            name is read as TSV.
        columns: Where the columns are, such as ``{"first": "6", "second": "7", "score": "5"}``:
            names in the first line, or numbers from 1.
        labelled: Whether each pair needs a score.
        tokenized: Whether the tokens of a text are separated by spaces already.
    """
    return [
        PairExample(
            row.text("first", tokenized),
            row.text("second", tokenized),
            row.score("score", labelled),
        )
        for row in read_rows(Source(path), COLUMNS, columns, labelled)
    ]
