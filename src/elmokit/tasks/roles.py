"""What a role labeller predicts: the frames of a text, shown as marked text or as CoNLL."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from elmokit.devices import check_memory
from elmokit.tasks.long_texts import sentence_bounds
from elmokit.tasks.marked_text import COLOURS, Mark, Marked, MarkedText
from elmokit.tasks.measures.tag_schemes import Span, read_spans
from elmokit.tasks.readers.examples import PREDICATE, Frame

_POINTER = 8  # bytes of a tag in a list


@dataclass(frozen=True)
class Roles(Marked):
    """Words, and the frames that a model predicts for them."""

    words: list[str]
    frames: list[Frame]
    """One for each predicate: the given ones, or else those that the model found."""
    found: list[int]
    """Numbers of the words that the model takes for predicates."""
    lengths: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """Words of each sentence; empty for one."""

    def sentences(self) -> list[Roles]:
        """Return each sentence alone."""
        if not self.lengths:
            return [self]
        bounds = sentence_bounds(self.lengths)
        frames: list[list[Frame]] = [[] for _ in bounds]
        found: list[list[int]] = [[] for _ in bounds]
        for frame in self.frames:
            k = _number(bounds, frame.predicate)
            frames[k].append(_within(frame, *bounds[k]))
        for place in self.found:
            k = _number(bounds, place)
            found[k].append(place - bounds[k][0])
        parts = zip(bounds, frames, found, strict=True)
        return [Roles(self.words[start:end], some, places) for (start, end), some, places in parts]

    def roles(self) -> list[list[Span]]:
        """Return the roles of each frame as (start, end, role)."""
        if not self.lengths:
            return list(map(role_spans, self.frames))
        bounds, found = sentence_bounds(self.lengths), []
        for frame in self.frames:  # only its sentence is looked at: a text has many frames
            start, end = bounds[_number(bounds, frame.predicate)]
            spans = role_spans(_within(frame, start, end))
            found.append([Span(a + start, b + start, role) for a, b, role in spans])
        return found

    def marked(self, kinds: Sequence[str] = ()) -> list[MarkedText]:
        """Return each sentence with the roles of each predicate; C-ARG1 is coloured as ARG1."""
        kinds = kinds or [PREDICATE, *(role for some in self.roles() for *_, role in some)]
        roles = dict.fromkeys(map(_base, kinds))  # V is the first
        group = {role: 1 + (i - 1) % (len(COLOURS) - 1) if i else 0 for i, role in enumerate(roles)}
        found = []
        for one in self.sentences():
            marks = [
                [Mark(a, b, role, group.get(_base(role), 0)) for a, b, role in some]
                for some in one.roles()
            ]
            found += [MarkedText(one.words, some) for some in marks or [[]]]
        return found


def joined_roles(parts: Sequence[Roles]) -> Roles:
    """Return the roles in a text from those in its sentences."""
    words = [word for one in parts for word in one.words]
    n_frames = sum(len(one.frames) for one in parts)
    check_memory(
        n_frames * len(words) * _POINTER,
        torch.device("cpu"),
        f"the tags of {n_frames:,} predicates in a text of {len(words):,} words",
        "give shorter texts",
    )
    lengths = tuple(len(one.words) for one in parts)
    frames, found = [], []
    for (start, end), one in zip(sentence_bounds(lengths), parts, strict=True):
        for frame in one.frames:
            tags = ["O"] * start + (frame.tags or []) + ["O"] * (len(words) - end)
            frames.append(Frame(start + frame.predicate, tags))
        found += [start + place for place in one.found]
    return Roles(words, frames, found, lengths)


def role_spans(frame: Frame) -> list[Span]:
    """Return the roles of a frame as (start, end, role)."""
    return read_spans(frame.tags or [])


def _base(role: str) -> str:
    """The role that a continuation or a reference, such as C-ARG1 or R-ARG1, belongs to."""
    return role[2:] if role.startswith(("C-", "R-")) else role


def _number(bounds: Sequence[tuple[int, int]], place: int) -> int:
    """The number of the sentence that a word is in."""
    return bisect_right(bounds, place, key=lambda bound: bound[0]) - 1


def _within(frame: Frame, start: int, end: int) -> Frame:
    """A frame of a text, in its sentence alone."""
    return Frame(frame.predicate - start, (frame.tags or [])[start:end])


def conll_block(sentence: Roles) -> str:
    """Return a sentence in CoNLL form: words, predicates, and a column for each predicate."""
    words = sentence.words
    frames = {frame.predicate: frame for frame in sentence.frames}  # a word has one
    predicates = [word if i in frames else "-" for i, word in enumerate(words)]
    roles = (_column(frames[i], len(words)) for i in sorted(frames))
    columns = [words, predicates, *roles]
    return "".join("\t".join(cells) + "\n" for cells in zip(*columns, strict=True))


def _column(frame: Frame, n: int) -> list[str]:
    """A frame as spans, such as (ARG0* * *)."""
    cells = ["*"] * n
    for start, end, role in role_spans(frame):
        cells[start] = f"({role}{cells[start]}"
        cells[end - 1] += ")"
    return cells
