"""What a role labeller predicts: the frames of a text, shown as marked text or as CoNLL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from elmokit.tasks.marked_text import COLOURS, Mark, Marked, MarkedText
from elmokit.tasks.measures.tag_schemes import Span, read_spans
from elmokit.tasks.readers.examples import PREDICATE, Frame


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
        ends = [0, *accumulate(self.lengths)]
        return [
            Roles(
                self.words[start:end],
                [
                    _within(frame, start, end)
                    for frame in self.frames
                    if start <= frame.predicate < end
                ],
                [place - start for place in self.found if start <= place < end],
            )
            for start, end in pairwise(ends)
        ]

    def marked(self, kinds: Sequence[str] = ()) -> list[MarkedText]:
        """Return the sentence with the roles of each predicate; C-ARG1 is coloured as ARG1."""
        kinds = kinds or [PREDICATE, *(role for f in self.frames for *_, role in role_spans(f))]
        roles = dict.fromkeys(map(_base, kinds))  # V is the first
        group = {role: 1 + (i - 1) % (len(COLOURS) - 1) if i else 0 for i, role in enumerate(roles)}
        found = []
        for one in self.sentences():
            marks = [
                [Mark(a, b, role, group.get(_base(role), 0)) for a, b, role in role_spans(frame)]
                for frame in one.frames
            ]
            found += [MarkedText(one.words, some) for some in marks or [[]]]
        return found


def role_spans(frame: Frame) -> list[Span]:
    """Return the roles of a frame as (start, end, role)."""
    return read_spans(frame.tags or [])


def _base(role: str) -> str:
    """The role that a continuation or a reference, such as C-ARG1 or R-ARG1, belongs to."""
    return role[2:] if role.startswith(("C-", "R-")) else role


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
