"""Examples of the tasks, as the readers return them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from elmokit.arguments import each, instance, strings, wrong
from elmokit.errors import InputError, shown
from elmokit.tasks.measures.tag_schemes import OUTSIDE, read_spans, stray_tags
from elmokit.text.tokenizers import Span

Words = str | list[str]
"""A text, or its tokens."""
PREDICATE = "V"
"""The role of a predicate in its own frame."""


def given_names(kind: type[Any]) -> list[str]:
    """Return the names of what an example gives: its fields without the answer, the last one.

    Fields that only a keyword can set say more about the others, and are not shown.
    """
    return [one.name for one in fields(kind)[:-1] if not one.kw_only]


@dataclass(frozen=True)
class TextExample:
    """A text and its class."""

    text: Words
    label: str | None = None


@dataclass(frozen=True)
class TaggedExample:
    """The words of a sentence and a tag for each."""

    words: list[str]
    lengths: tuple[int, ...] = field(default=(), kw_only=True, repr=False)
    """Words of each sentence of a text to predict for; empty for one sentence."""
    tags: list[str] | None = None

    def __post_init__(self) -> None:
        _check_lengths(self.lengths, self.words, self.tags)
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
    lengths: tuple[int, ...] = field(default=(), kw_only=True, repr=False)
    """Words of each sentence of a text to predict for; empty for one sentence."""
    frames: list[Frame] | None = None
    """None if it is not known which words are predicates."""

    def __post_init__(self) -> None:
        _check_lengths(self.lengths, self.words, self.frames)
        if self.frames is not None:
            frames = [_checked(frame, i, self.words) for i, frame in enumerate(self.frames, 1)]
            object.__setattr__(self, "frames", frames)


def _check_lengths(lengths: tuple[int, ...], words: list[str], answer: Any) -> None:
    if lengths and answer is not None:
        raise InputError("an example with an answer is one sentence; leave out lengths=")
    if lengths and (min(lengths) < 1 or sum(lengths) != len(words)):
        raise InputError(
            f"lengths must be numbers of words from 1 that add up to {len(words):,}, not "
            f"{shown(lengths)}"
        )


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
