"""Rows of TSV, CSV and JSONL files, with the columns that a task reads.

Columns are found by the names in the first line, or are given by name or number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elmokit.arguments import described
from elmokit.errors import InputError, shortened, shown
from elmokit.tasks.readers.chosen_columns import checked_columns, named
from elmokit.tasks.readers.examples import Words
from elmokit.tasks.readers.records import Source, json_records, table_records

ALIASES = {
    "text": ("text", "sentence", "text_a", "review", "content", "文本", "句子"),
    "label": (
        "label",
        "gold_label",
        "class",
        "category",
        "sentiment",
        "relation",
        "entailment_judgment",
        "entailment_label",
        "标签",
        "类别",
    ),
    "first": ("first", "sentence1", "sentence_a", "text_a", "text1", "句子1"),
    "second": ("second", "sentence2", "sentence_b", "text_b", "text2", "句子2"),
    "premise": ("premise", "sentence1", "sentence_a", "text_a", "text1", "first", "前提", "句子1"),
    "hypothesis": (
        "hypothesis",
        "sentence2",
        "sentence_b",
        "text_b",
        "text2",
        "second",
        "假设",
        "句子2",
    ),
    "score": ("score", "relatedness_score", "similarity", "相似度"),
    "question": ("question", "query", "问题"),
    "passage": ("passage", "context", "paragraph", "段落", "文章"),
    "answer": ("answer", "answers", "答案"),
    "id": ("id", "qid", "编号"),
}
"""Names in a file for each column that tasks read, in lower case, the preferred ones first."""

_COLUMN_NUMBER = re.compile(r"[1-9]\d{0,4}$")


@dataclass(frozen=True)
class Wanted:
    """The columns that a task reads."""

    inputs: tuple[str, ...]
    answer: str
    unnamed: dict[int, tuple[str, ...]]
    """The columns, in order, of a file that names none, by the number of its columns."""
    optional: tuple[str, ...] = ()
    """Columns that are read if the file names them."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.inputs, self.answer, *self.optional)


@dataclass(frozen=True)
class Row:
    """The cells of a line that a task reads; those of JSONL can be of any type."""

    source: Source
    line: int
    """Where it begins, from 1."""
    cells: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str, tokenized: bool = False) -> Words:
        """A text, or its tokens if they are given, or separated by spaces."""
        value = self.cells[name]
        if isinstance(value, list):
            if value and all(isinstance(token, str) and token.strip() for token in value):
                return value
            raise self.error(f"has {shown(value)} as its {name}; expected tokens that are strings")
        if not isinstance(value, str):
            raise self.error(
                f"has {described(value)} as its {name}; expected a text, or a list of tokens"
            )
        if not value.strip():
            raise self.error(f"has an empty {name}; fix or remove the line")
        return value.split() if tokenized else value.strip()

    def label(self, name: str, needed: bool) -> str | None:
        """A label; None if it is not needed, and missing or malformed."""
        value = self.cells.get(name)
        if isinstance(value, bool):
            return str(value).lower()  # as JSON writes it
        if isinstance(value, int):
            return str(value)
        if self._is_empty(name, needed):
            return None
        if isinstance(value, str):
            return value.strip()
        if not needed:
            return None
        raise self.error(
            f"has {described(value)} as its {name}; expected a string or a whole number"
        )

    def score(self, name: str, needed: bool) -> float | None:
        """A number; None if it is not needed, and missing or malformed."""
        value = self.cells.get(name)
        if self._is_empty(name, needed):
            return None
        try:
            # Python reads 1_000 as a number, too
            bad = isinstance(value, bool) or (isinstance(value, str) and "_" in value)
            number = math.nan if bad else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
        if not needed:
            return None
        raise self.error(f"has {described(value)} as its {name}; expected a number, such as 3.5")

    def error(self, what: str) -> InputError:
        """The error for this row."""
        return self.source.error(self.line, what)

    def _is_empty(self, name: str, needed: bool) -> bool:
        value = self.cells.get(name)
        empty = value is None or (isinstance(value, str) and not value.strip())
        if empty and needed:
            raise self.error(f"has no {name}; write one, or remove the line")
        return empty


def read_rows(
    source: Source, wanted: Wanted, columns: Mapping[str, str] | None = None, labelled: bool = True
) -> list[Row]:
    """Read the rows of a TSV, CSV or JSONL file.

    Args:
        source: The file.
        wanted: The columns to read.
        columns: Where some columns are: a name in the first line (a key in JSONL), or a number from
            1. Names mean that the first line is a header.
        labelled: Whether the column of the answer is needed.
    """
    given = checked_columns(columns, wanted.names, {"label": "1", "text": "3"})
    if source.kind == "jsonl":
        rows = list(_json_rows(source, wanted, given, labelled))
    else:
        rows = _table_rows(source, wanted, given, labelled)
    if not rows:
        raise source.nothing(f"rows with the columns {named(_names(wanted, labelled))}")
    return rows


def _names(wanted: Wanted, labelled: bool) -> tuple[str, ...]:
    return (*wanted.inputs, wanted.answer) if labelled else wanted.inputs


# TSV and CSV


def _table_rows(
    source: Source, wanted: Wanted, columns: dict[str, str], labelled: bool
) -> list[Row]:
    records = table_records(source)
    if not records:
        return []
    line, cells = records[0]
    header, places = _find_columns(source, line, cells, wanted, columns, labelled)
    # numbered columns are enough: rows of STS-B end in up to two columns more
    exact = None if columns and not header else len(cells)
    needed = max(places.values()) + 1
    rows = []
    for line, found in records[header:]:
        if len(found) < needed or (exact is not None and len(found) != exact):
            enough = exact is not None and exact >= needed
            raise source.error(
                line,
                f"has {_counted(len(found))}; expected {exact if enough else f'at least {needed}'}"
                f"; check {'its separators' if enough or not columns else 'columns='}",
            )
        rows.append(Row(source, line, {name: found[i] for name, i in places.items()}))
    if not columns and not header and "label" in places:
        _check_order(source, rows)
    return rows


def _find_columns(
    source: Source,
    line: int,
    cells: Sequence[str],
    wanted: Wanted,
    columns: dict[str, str],
    labelled: bool,
) -> tuple[bool, dict[str, int]]:
    """Whether the first line is a header, and the columns by name, from 0."""
    lower = [cell.strip().lower() for cell in cells]
    known = {
        name: next((lower.index(alias) for alias in ALIASES[name] if alias in lower), None)
        for name in wanted.names
    }
    places = {name: i for name, i in known.items() if i is not None}
    header = all(name in places for name in wanted.inputs)
    numbers = {name: int(n) - 1 for name, n in columns.items() if _COLUMN_NUMBER.match(n)}
    header |= len(numbers) < len(columns)
    header |= any(i < len(lower) and lower[i] in ALIASES[name] for name, i in numbers.items())
    if not header:
        places = {}
        if not columns:
            order = wanted.unnamed.get(len(cells), ())
            places = {name: i for i, name in enumerate(order)}
    for name, place in columns.items():
        if name not in numbers and place.lower() not in lower:
            raise InputError(
                f"{source.name} has no column {shown(place)}; its first line has "
                f"{_quoted(cells)}; choose one of these"
            )
        places[name] = numbers[name] if name in numbers else lower.index(place.lower())
    if missing := [name for name in _names(wanted, labelled) if name not in places]:
        if header:
            raise source.error(
                line,
                f"has no column {named(missing)}; its columns are {_quoted(cells)}; choose one "
                f'with columns={{"{missing[0]}": "NAME"}}',
            )
        names = _names(wanted, labelled)
        example = json.dumps({name: str(i) for i, name in enumerate(names, 1)})
        raise source.error(
            line,
            f"has {_counted(len(cells))} without names; add a first line with the names "
            f"{named(names)}, or choose columns by number with columns={example}",
        )
    return header, places


def _counted(n: int) -> str:
    return "1 column" if n == 1 else f"{n} columns"


def _quoted(cells: Sequence[str]) -> str:
    return shortened(", ".join(cells))


def _check_order(source: Source, rows: Sequence[Row]) -> None:
    """Raise if the first of two unnamed columns looks like the text."""
    labels, texts = (len({row.cells[name] for row in rows}) for name in ("label", "text"))
    if labels > texts:
        raise InputError(
            f"the first column of {source.name} has {labels:,} different values and the second "
            f"{texts:,}; expected the label first; if the text is first, pass "
            'columns={"text": "1", "label": "2"}'
        )


# JSONL


def _json_rows(
    source: Source, wanted: Wanted, columns: dict[str, str], labelled: bool
) -> Iterator[Row]:
    for line, values in json_records(source):
        lower = {key.lower(): key for key in reversed(values)}
        cells = {}
        for name in wanted.names:
            names = (columns[name],) if name in columns else ALIASES[name]
            keys = [n if n in values else lower.get(n.lower()) for n in names]
            key = next((k for k in keys if k is not None), None)
            if key is not None:
                cells[name] = values[key]
            elif name in _names(wanted, labelled):
                raise source.error(
                    line,
                    f"has no {shown(names[0])} (its keys are {_quoted(list(values))}); add it, or "
                    f'choose a key with columns={{"{name}": "KEY"}}',
                )
        yield Row(source, line, cells)
