"""Spans of tokens as tags, and back: IOB1, IOB2, BIOES, BMES, BILOU and BIOS.

Every token has a tag: O outside of spans, otherwise a letter and the type of its span, such as
B-PER. A letter alone is a tag too, as in word segmentation; the type of its span is empty.

======  =====  ======  ====  ============
scheme  first  middle  last  single token
======  =====  ======  ====  ============
iob2    B      I       I     B
bioes   B      I       E     S
bmes    B      M       E     S
bilou   B      I       L     U
bios    B      I       I     S
iob1    I      I       I     I
======  =====  ======  ====  ============

IOB1 writes B for the first token of a span right after another span of the same type. BIO usually
means IOB2. BIOES is also called IOBES, and BILOU is also called BIOLU.

Tags are read strictly, as seqeval does with ``mode="strict"``: only a sequence exactly as in the
table is a span. Other tags belong to no span and count as O:

- iob2: an I- at the start of a sentence, after O, or after another type (in ``B-PER I-LOC``, the
  first token is a span of PER, and the second one belongs to no span);
- bioes, bmes and bilou: also a span without its last token (``B-PER I-PER O``), and a last or a
  middle token without a first one. The whole of it is no span;
- bios: also a B- that no I- of its type follows, which should have been an S-.

IOB1 has no illegal sequences: any change of type starts a span, and so does every B-, which this
scheme needs only between spans of the same type. seqeval's strict IOB1 rejects other B- tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elmokit import arguments
from elmokit.errors import InputError, shown

OUTSIDE = "O"
"""The tag of tokens outside of spans."""


class _Letters(NamedTuple):
    first: str
    middle: str
    last: str
    single: str


_LETTERS = {
    "iob2": _Letters("B", "I", "I", "B"),
    "bios": _Letters("B", "I", "I", "S"),
    "bioes": _Letters("B", "I", "E", "S"),
    "bmes": _Letters("B", "M", "E", "S"),
    "bilou": _Letters("B", "I", "L", "U"),
}
_ALL_LETTERS = tuple("BIMESLU")
SCHEMES = ("iob1", *_LETTERS)
"""Names of the schemes."""


class Span(NamedTuple):
    """Tokens from start up to but not including end."""

    start: int
    end: int
    type: str


def read_spans(tags: Sequence[str], scheme: str = "iob2") -> list[Span]:
    """The spans of a sentence, in order.

    Args:
        tags: One tag per token.
        scheme: One of :data:`SCHEMES`.
    """
    scheme = arguments.one_of(scheme, "scheme", SCHEMES)
    letters = _LETTERS["iob2" if scheme == "iob1" else scheme]
    parts = _parts(arguments.strings(tags, "tags"), letters)
    if scheme == "iob1":
        parts = _iob1_as_iob2(parts)
    spans = []
    start = 0
    while start < len(parts):
        end = _end(parts, start, letters)
        if parts[end - 1].letter == (letters.last if end - start > 1 else letters.single):
            spans.append(Span(start, end, parts[start].type))
        start = end
    return spans


def write_tags(spans: Iterable[Span], n: int, scheme: str = "iob2") -> list[str]:
    """The tags of a sentence of n tokens with these spans, which must not overlap."""
    letters = _LETTERS.get(arguments.one_of(scheme, "scheme", SCHEMES))
    tags = [OUTSIDE] * n
    before = Span(0, 0, "")
    for span in sorted(spans):
        start, end, kind = span
        if not before.end <= start < end <= n:
            raise InputError(
                f"cannot write {tuple(span)} as tags of {n:,} tokens; expected spans of at least "
                "one token that do not overlap"
            )
        if letters is None:  # IOB1
            follows = before.end == start > 0 and before.type == kind
            marks = ("B" if follows else "I") + "I" * (end - start - 1)
        elif end - start == 1:
            marks = letters.single
        else:
            marks = letters.first + letters.middle * (end - start - 2) + letters.last
        tags[start:end] = [f"{mark}-{kind}" if kind else mark for mark in marks]
        before = span
    return tags


def convert_tags(tags: Sequence[str], source: str, target: str) -> list[str]:
    """The tags of a sentence in another scheme; tags that belong to no span become O."""
    return write_tags(read_spans(tags, source), len(tags), target)


def to_iob2(tags: Sequence[str], scheme: str) -> list[str]:
    """The tags of a sentence in IOB2; tags that belong to no span become O."""
    return convert_tags(tags, scheme, "iob2")


def stray_tags(tags: Sequence[str], scheme: str = "iob2") -> list[int]:
    """Positions of the tags other than O that belong to no span."""
    inside = {place for span in read_spans(tags, scheme) for place in range(span.start, span.end)}
    return [k for k, tag in enumerate(tags) if tag != OUTSIDE and k not in inside]


def detect_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme of a file's tags: the first one that has all their letters.

    The order is IOB2, BIOS, BIOES, BMES, BILOU. IOB1 has the letters of IOB2. It starts spans with
    I-, so the scheme is IOB1 if more spans start with I- than with B-; a B- right after a tag of
    its type is not counted, because both schemes have it.

    Args:
        sentences: The tags of all sentences; a single one may not show the scheme.
    """
    letters = {OUTSIDE}
    starts: Counter[str] = Counter()
    for tags in arguments.each(sentences, "sentences", "a list of lists of tags"):
        before = _NOTHING
        for part in _parts(arguments.strings(tags, "each of sentences"), _ALL_LETTERS):
            letters.add(part.letter)
            starts[part.letter] += not part.may_follow(before)
            before = part
    for scheme, known in _LETTERS.items():
        if letters <= {OUTSIDE, *known}:
            return "iob1" if scheme == "iob2" and starts["I"] > starts["B"] else scheme
    raise InputError(
        f"the tags start with {', '.join(sorted(letters))}, which no scheme combines; expected "
        f"tags of {', '.join(scheme.upper() for scheme in SCHEMES)}"
    )


class _Part(NamedTuple):
    """A tag."""

    letter: str
    type: str

    def may_follow(self, before: _Part) -> bool:
        """Whether this tag and the one before may belong to the same span."""
        return before.letter != OUTSIDE and before.type == self.type


_NOTHING = _Part(OUTSIDE, "")


def _parts(tags: Iterable[str], letters: Iterable[str]) -> list[_Part]:
    known = {tag: _part(tag, letters) for tag in set(tags)}
    return [known[tag] for tag in tags]


def _part(tag: str, letters: Iterable[str]) -> _Part:
    letter, dash, kind = tag.partition("-")
    if tag == OUTSIDE or (letter in letters and bool(dash) == bool(kind)):
        return _Part(letter, kind)
    choices = ", ".join(f"{known}-" for known in dict.fromkeys(letters))
    raise InputError(
        f"unknown tag {shown(tag)}; expected O, or one of {choices} followed by a type"
    )


def _end(parts: Sequence[_Part], start: int, letters: _Letters) -> int:
    """Where the run of tags ends that starts here; it is a span if it is complete."""
    end = start + 1
    if parts[start].letter != letters.first:
        return end
    while end < len(parts) and parts[end].may_follow(parts[start]):
        if parts[end].letter not in (letters.middle, letters.last):
            break
        end += 1
        if parts[end - 1].letter == letters.last != letters.middle:
            break
    return end


def _iob1_as_iob2(parts: Sequence[_Part]) -> list[_Part]:
    starts = (
        part.letter == "I" and not part.may_follow(before)
        for before, part in zip([_NOTHING, *parts], parts, strict=False)
    )
    return [_Part("B", p.type) if first else p for first, p in zip(starts, parts, strict=True)]
