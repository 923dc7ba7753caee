"""Examples of the tasks, as the readers return them."""

from __future__ import annotations

from dataclasses import dataclass

from elmokit.errors import InputError, shown
from elmokit.tasks.measures.tag_schemes import OUTSIDE, read_spans, stray_tags
from elmokit.text.tokenizers import Span

Words = str | list[str]
"""A text, or its tokens."""
PREDICATE = "V"
"""The role of a predicate in its own frame."""


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


@dataclass(frozen=True)
class Frame:
    """A predicate and the roles of the words around it."""

    predicate: int
    """Number of its first word, from 0."""
    tags: list[str] | None = None
    """A tag for each word, in IOB2: the predicate is V, as in B-ARG0 B-V B-ARG1 I-ARG1 O."""


@dataclass(frozen=True)
class RoleExample:
    """The words of a sentence and a frame for each of its predicates.

    In a frame with tags, O at the predicate is read as V.
    """

    words: list[str]
    frames: list[Frame] | None = None
    """None if it is not known which words are predicates."""

    def __post_init__(self) -> None:
        if self.frames is not None:
            frames = [_checked(frame, i, self.words) for i, frame in enumerate(self.frames, 1)]
            object.__setattr__(self, "frames", frames)


def _checked(frame: Frame, number: int, words: list[str]) -> Frame:
    """A frame whose predicate is V."""
    place, tags, name = frame.predicate, frame.tags, f"frame {number}"
    if not 0 <= place < len(words):
        raise InputError(
            f"the predicate of {name} is word {place}; expected a number from 0 to "
            f"{len(words) - 1}, of {len(words):,} words"
        )
    if tags is None:
        return frame
    if len(tags) != len(words):
        raise InputError(
            f"{name} has {len(tags):,} tags for {len(words):,} words; expected a tag for each word"
        )
    try:
        spans = read_spans(tags)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if sum(end - start for start, end, _ in spans) < len(tags) - tags.count(OUTSIDE):
        stray = stray_tags(tags)[0]
        raise InputError(
            f"{name} has {shown(tags[stray])} for word {stray}, which does not continue a role; "
            "expected a B- tag where a role begins"
        )
    if not all(role for _, _, role in spans):
        raise InputError(f"{name} has a tag without a role; expected tags such as B-ARG0")
    verbs = [start for start, _, role in spans if role == PREDICATE]
    if not verbs and tags[place] == OUTSIDE:
        tags = [*tags[:place], f"B-{PREDICATE}", *tags[place + 1 :]]
    elif verbs != [place]:
        raise InputError(
            f"{name} has {shown(tags[place])} for its predicate, word {place}; expected the role "
            f"{PREDICATE} to begin there, and nowhere else"
        )
    return Frame(place, tags)
