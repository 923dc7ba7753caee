"""Tables as HTML, for notebooks: everything escaped, the colours of the page, no scripts.

Styles are inside the elements. A notebook page has style sheets of its own, light or dark, and
pages that show stored notebooks remove style sheets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_MOST_ROWS = 50
_NUMBER = re.compile(r"[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?%?|inf|nan|–|")
_CELL = "text-align: {align}; padding: .15em .8em .15em 0; vertical-align: top;"


@dataclass(frozen=True)
class Table:
    """A table of text."""

    rows: Sequence[Sequence[str]]
    columns: Sequence[str] = ()
    """Heads of the columns; none for a table without a head."""
    title: str = ""
    notes: Sequence[str] = ()
    """What the reader should know, one sentence each; below the table."""


def facts(title: str, values: Mapping[str, object]) -> Table:
    """A table of names and values; whole numbers get commas."""
    rows = [[name, f"{v:,}" if type(v) is int else str(v)] for name, v in values.items()]
    return Table(rows, (), title)


def html_table(table: Table) -> str:
    """Return a table as HTML; of a long one, the first rows.

    Columns of numbers are aligned to the right.
    """
    shown = table.rows[:_MOST_ROWS]
    n_columns = max(map(len, [table.columns, *shown]))
    aligns = ["right" if _is_numbers(shown, k) else "left" for k in range(n_columns)]
    body = [_row(row, aligns, "td") for row in shown]
    head = [_row(table.columns, aligns, "th")] if table.columns else []
    notes = [*([_more(len(table.rows))] if len(table.rows) > _MOST_ROWS else []), *table.notes]
    return "\n".join(
        [
            '<div style="overflow-x: auto;">',
            *([f'<p dir="auto"><b>{escape(table.title)}</b></p>'] if table.title else []),
            '<table style="border-collapse: collapse; margin: 0;">',
            *(["<thead>", *head, "</thead>"] if head else []),
            *(["<tbody>", *body, "</tbody>"] if body else []),
            "</table>",
            *(f'<p dir="auto"><small>{escape(note)}</small></p>' for note in notes),
            "</div>",
        ]
    )


def _row(cells: Sequence[str], aligns: Sequence[str], tag: str) -> str:
    parts = (
        f'<{tag} dir="auto" style="{_CELL.format(align=align)}">{escape(cell)}</{tag}>'
        for cell, align in zip(cells, aligns, strict=False)
    )
    return f"<tr>{''.join(parts)}</tr>"


def _is_numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether all cells of a column are numbers or empty; not the first column."""
    cells = [row[column] for row in rows if column < len(row)]
    return column > 0 and all(map(_NUMBER.fullmatch, cells))


def _more(n: int) -> str:
    return f"the first {_MOST_ROWS} of {n:,} rows"
