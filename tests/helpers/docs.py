"""The pages of the documentation, and their code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.zh-CN.md"]
ENGLISH = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "docs").glob("*.md")
    if not path.name.endswith(".zh.md")
)
PAGES = [*READMES, *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A fenced block of code."""

    language: str
    code: str
    line: int
    """The line it begins on."""
    output: str | None
    """The text block right after it, which shows what it prints."""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, *languages: str) -> list[Block]:
    """Blocks of a page in order, of some languages or of all."""
    text = read(page)
    found = list(_BLOCK.finditer(text))
    result = []
    for i, match in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        shown = after is not None and after[1] == "text"
        output = after[2] if shown and not text[match.end() : after.start()].strip() else None
        line = text.count("\n", 0, match.start()) + 2
        result.append(Block(match[1], match[2], line, output))
    return [block for block in result if not languages or block.language in languages]


def translation(page: str) -> str | None:
    """The Chinese version of an English page, if it exists."""
    chinese = "README.zh-CN.md" if page == "README.md" else page.replace(".md", ".zh.md")
    return chinese if (ROOT / chinese).exists() else None


def bare_code(page: str) -> list[str]:
    """The code that runs, without comments, which are translated."""
    return [re.sub(r"[ \t]*#.*", "", block.code) for block in blocks(page, "python", "bash")]


def without_code(page: str) -> str:
    return _BLOCK.sub("", read(page))
