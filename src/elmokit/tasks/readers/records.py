"""Records of TSV, CSV and JSONL files: the cells of each row, or the values of each object.

Cells of TSV files are taken literally; only cells of CSV files can be quoted.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from elmokit.arguments import described, file_path
from elmokit.errors import InputError, shortened
from elmokit.io.lines import PACKED, numbered_lines, shown_path

_KINDS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}
_LONGEST_CELL = 1 << 30


class Source:
    """A file of examples, opened to see its first line.

    Args:
        path: The file, packed or not; ``-`` for standard input.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = file_path(path, "path")
        self.name = shown_path(self.path)
        self.kind = table_kind(self.path)
        lines = numbered_lines(self.path)
        beginning = next((pair for pair in lines if pair[1].strip()), None)
        self.first_line, self.first = (1, "") if beginning is None else beginning
        """The first line that is not blank, and its number."""
        self.lines = lines if beginning is None else chain([beginning], lines)

    def error(self, line: int, what: str) -> InputError:
        """The error for a line."""
        return InputError(f"line {line} of {self.name} {what}")

    def nothing(self, expected: str) -> InputError:
        """The error for a file without examples."""
        return InputError(f"no examples found in {self.name}; expected {expected}")


def unpacked_suffix(path: Path) -> str:
    """The suffix of a file, in lower case; of a packed one, that of its content."""
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix.lower()


def table_kind(path: Path) -> str | None:
    """Return tsv, csv or jsonl by the name of a file; None for other names."""
    return _KINDS.get(unpacked_suffix(path))


def table_records(source: Source) -> list[tuple[int, list[str]]]:
    """The cells of each row that is not blank, and the line where the row begins."""
    with _long_cells():
        return list(_cells(source))


def json_records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """The values of each line that is not blank, and its number."""
    for line, text in source.lines:
        if text.strip():
            yield line, _parse(source, line, text)


def _cells(source: Source) -> Iterator[tuple[int, list[str]]]:
    delimiter = _delimiter(source)
    if delimiter != "\t":
        yield from _csv_records(source, delimiter)
        return
    for line, text in source.lines:
        if text.strip(" "):
            yield line, text.split("\t")


def _delimiter(source: Source) -> str:
    """The delimiter in the first line; files of any name may have tabs."""
    if "\t" in source.first or source.kind != "csv":
        return "\t"
    return "," if "," in source.first or ";" not in source.first else ";"


def _csv_records(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    last = source.first_line - 1

    def texts() -> Iterator[str]:
        nonlocal last
        for number, text in source.lines:
            last = number
            yield text + "\n"  # cells may have several lines

    records = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        begin = last + 1
        try:
            cells = next(records, None)
        except csv.Error as error:
            raise source.error(
                begin,
                f"is not CSV ({error}); put cells with commas or quotation marks into quotation "
                "marks, and write a quotation mark inside them twice",
            ) from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield begin, cells


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let cells be longer than the csv module allows by itself: 131,072 characters."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _parse(source: Source, line: int, text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
        if "\\u" in text:  # half of a character, which could not be written anywhere
            json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise source.error(
            line, "contains half of a character, such as \\ud83d without \\ude00; fix the line"
        ) from None
    except (ValueError, RecursionError) as error:
        reason = shortened(str(error))
        raise source.error(
            line, f"is not JSON ({reason}); expected one object per line, in braces"
        ) from None
    if not isinstance(values, dict):
        raise source.error(line, f"is {described(values)}; expected one object per line, in braces")
    return values
