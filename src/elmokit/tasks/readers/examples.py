"""Examples of the tasks, as the readers return them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from elmokit.arguments import instance, wrong
from elmokit.errors import InputError, shown
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


class GoldAnswer(NamedTuple):
    """A right answer, and where it is."""

    text: str
    start: int
    """Its first character in the passage."""


@dataclass(frozen=True)
class QuestionExample:
    """A question about a passage, and the right answers, which are parts of the passage."""

    question: str
    passage: str
    id: str = ""
    """Name of the question in its file; empty if it has none."""
    answers: Sequence[GoldAnswer | str] | None = None
    """Strings if their places are not known: every occurrence in the passage is right."""

    def __post_init__(self) -> None:
        for name in ("question", "passage", "id"):
            instance(getattr(self, name), name, str, "a string")
        for name in ("question", "passage"):
            if not getattr(self, name).strip():
                raise InputError(f"the {name} is empty; write one")
        if self.answers is None:
            return
        if isinstance(self.answers, str) or not self.answers:
            raise InputError("a question needs a list of one answer or more")
        for answer in self.answers:
            self._check_answer(answer)

    @property
    def answer_texts(self) -> list[str]:
        """The right answers without their places."""
        return [a if isinstance(a, str) else a.text for a in self.answers or ()]

    def _check_answer(self, answer: Any) -> None:
        if isinstance(answer, str):
            fits, text = answer in self.passage, answer
        elif isinstance(answer, GoldAnswer):
            text, start = answer
            fits = start >= 0 and self.passage.startswith(text, start)
        else:
            raise wrong("each answer", "a string or a GoldAnswer", answer)
        if not text.strip():
            raise InputError("an answer is empty; expected a part of the passage")
        if not fits:
            where = "" if isinstance(answer, str) else f" at character {answer.start}"
            raise InputError(
                f"the answer {shown(text)} is not in the passage{where}; expected a part of it, "
                "letter by letter"
            )


@dataclass(frozen=True)
class PairExample:
    """Two texts and how similar they are."""

    first: Words
    second: Words
    score: float | None = None
