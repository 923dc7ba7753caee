"""Traditional Chinese characters and their simplified forms, one for one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).parent / "traditional.txt"


def simplified(text: str) -> str:
    """Return a text with its traditional characters replaced by simplified ones.

    The length stays the same, so offsets in the text stay valid. Each character is replaced on its
    own: OpenCC, which also looks at words, gives another result for one in five thousand
    characters of Wikipedia.
    """
    if text.isascii():
        return text
    table, traditional = _pairs()
    return text.translate(table) if traditional.search(text) else text


@cache
def _pairs() -> tuple[dict[int, str], re.Pattern[str]]:
    """Return the table for str.translate, and a pattern that finds its characters."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    table = {ord(line[0]): line[1] for line in lines if line[0] != "#"}
    return table, re.compile(f"[{''.join(map(chr, table))}]")
