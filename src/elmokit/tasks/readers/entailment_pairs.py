"""Pairs of texts, each with a label: whether the second follows from the first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elmokit.tasks.readers.examples import EntailmentExample
from elmokit.tasks.readers.records import Source
from elmokit.tasks.readers.rows import Wanted, read_rows

COLUMNS = Wanted(("premise", "hypothesis"), "label", {2: ("premise", "hypothesis")})


def read_entailment_examples(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    labelled: bool = True,
    tokenized: bool = False,
) -> list[EntailmentExample]:
    """Read pairs of a premise and a hypothesis, as those of SNLI, MultiNLI, SICK and OCNLI.

    Args:
        path: A TSV, CSV or JSONL file with the columns premise, hypothesis and label. A file of
            another name is read as TSV.
        columns: Where the columns are, such as
            ``{"premise": "6", "hypothesis": "7", "label": "1"}``: names in the first line, or
            numbers from 1.
        labelled: Whether each pair needs a label. Labels stay as they are in the file, ``-`` too.
        tokenized: Whether the tokens of a text are separated by spaces already.
    """
    return [
        EntailmentExample(
            row.text("premise", tokenized),
            row.text("hypothesis", tokenized),
            row.label("label", labelled),
        )
        for row in read_rows(Source(path), COLUMNS, columns, labelled)
    ]
