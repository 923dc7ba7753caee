"""Examples of the tasks, as the readers return them."""

from __future__ import annotations

from dataclasses import dataclass

from elmokit.errors import InputError
from elmokit.text.tokenizers import Span

Words = str | list[str]
"""A text, or its tokens."""


@dataclass(frozen=True)
class TextExample:
    """A text and its class."""

    text: Words
    label: str | None = None


@dataclass(frozen=True)
class TaggedExample:
    """The words of a sentence and a tag for each."""

    words: list[str]
    tags: list[str] | None = None

    def __post_init__(self) -> None:
        if self.tags is not None and len(self.tags) != len(self.words):
            raise InputError(
                f"words and tags differ in number, {len(self.words)} and {len(self.tags)}; "
                "expected a tag for each word"
            )


@dataclass(frozen=True)
class RelationExample:
    """A text with two entities and the relation between them."""

    text: str
    """Without the marks of the entities."""
    first: Span
    """Characters of the first entity, marked ``<e1>``."""
    second: Span
    """Characters of the second entity, marked ``<e2>``; it does not overlap the first."""
    label: str | None = None


@dataclass(frozen=True)
class EntailmentExample:
    """Two texts, and whether the second follows from the first."""

    premise: Words
    hypothesis: Words
    label: str | None = None


@dataclass(frozen=True)
class PairExample:
    """Two texts and how similar they are."""

    first: Words
    second: Words
    score: float | None = None
