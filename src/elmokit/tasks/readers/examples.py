"""Examples of the tasks, as the readers return them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.arguments import each, strings, wrong
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


@dataclass(frozen=True)
class PairExample:
    """Two texts and how similar they are."""

    first: Words
    second: Words
    score: float | None = None


@dataclass(frozen=True)
class DocumentExample:
    """The sentences of a document, and which of its words mean the same person or thing."""

    sentences: list[list[str]]
    """The words of each sentence."""
    name: str = ""
    clusters: Sequence[Sequence[Span]] | None = None
    """Each has the mentions (start, end) of one entity. Words are counted from 0 over the whole
    document; ``end`` is the word after the last one. A cluster of one mention is a singleton."""

    def __post_init__(self) -> None:
        for words in each(self.sentences, "sentences", "a list of sentences"):
            strings(words, "each sentence", "a list of words")
        if self.clusters is None:
            return
        try:
            clusters = [[(int(a), int(b)) for a, b in cluster] for cluster in self.clusters]
        except (TypeError, ValueError):
            raise wrong(
                "clusters", "lists of mentions, each a pair (start, end)", self.clusters
            ) from None
        object.__setattr__(self, "clusters", clusters)
        n_words = sum(map(len, self.sentences))
        seen: set[Span] = set()
        for cluster in clusters:
            for start, end in cluster:
                if not 0 <= start < end <= n_words:
                    raise InputError(
                        f"a mention has the words {start} to {end}; expected a start before the "
                        f"end, both within the {n_words:,} words of the document"
                    )
                if (start, end) in seen:
                    raise InputError(
                        f"the mention {shown(self.text(start, end))}, words {start} to {end}, is "
                        "in two clusters, or twice in one; expected it once"
                    )
                seen.add((start, end))

    def text(self, start: int, end: int) -> str:
        """Some words of the document, with spaces between them."""
        return " ".join([word for sentence in self.sentences for word in sentence][start:end])
