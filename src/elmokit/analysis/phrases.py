"""Find a word or phrase among tokens.

Languages written without spaces are cut into words by a segmenter, which may cut otherwise than
the word asked for: 苹果 may be part of the token 苹果公司, and 苹果公司 may be the two tokens 苹果
and 公司. Both are found here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from elmokit.errors import InputError, shown
from elmokit.text.scripts import UNSPACED


@dataclass(frozen=True)
class Place:
    """Where a word or phrase is in a sentence."""

    start: int
    """Its first token."""
    end: int
    """The token after its last."""
    longer: str = ""
    """The token that contains the word, if that is longer than the word."""

    @property
    def tokens(self) -> slice:
        """Its tokens."""
        return slice(self.start, self.end)


def find_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[Place]:
    """Find a phrase, regardless of case.

    In scripts without spaces, the phrase may be cut into other tokens than given. If it is nowhere
    made of whole tokens, the tokens that contain it are returned.

    Args:
        tokens: The tokens of a sentence.
        phrase: The tokens of the phrase.
    """
    wanted = [token.casefold() for token in phrase]
    given = [token.casefold() for token in tokens]
    if any(UNSPACED.search(token) for token in wanted):
        return _find_characters(tokens, given, "".join(wanted))
    n = len(wanted)
    # the first token alone rules out nearly all positions
    return [
        Place(i, i + n)
        for i, token in enumerate(given)
        if token == wanted[0] and given[i : i + n] == wanted
    ]


def require_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[Place]:
    """Return the places as :func:`find_phrase` does; an error if there are none."""
    check_phrase(phrase)
    if found := find_phrase(tokens, phrase):
        return found
    start = shown(" ".join(tokens[:30]))
    raise InputError(
        f"{shown(' '.join(phrase))} is not among the tokens of {start}; expected one of them"
    )


def check_phrase(phrase: Sequence[str]) -> None:
    """Raise an error for a phrase without tokens."""
    if not phrase:
        raise InputError("word= is empty; expected a word of the sentence")


def notes_on_longer(word: str, longer: Sequence[str]) -> list[str]:
    """Say how often a word was found as part of a longer token.

    Args:
        word: The word.
        longer: The longer token of each occurrence; empty where the word has tokens of its own.
    """
    if not (some := [token for token in longer if token]):
        return []
    are = "1 occurrence of {} is" if len(some) == 1 else f"{len(some):,} occurrences of {{}} are"
    example = max(set(some), key=some.count)
    return [
        f"{are.format(word)} part of a longer token, such as {example[:40]}; its vector is used"
    ]


def _find_characters(tokens: Sequence[str], given: Sequence[str], wanted: str) -> list[Place]:
    """Find a string among tokens: as some whole tokens, or else within one token."""
    text = "".join(given)
    starts = list(accumulate(map(len, given), initial=0))  # of each token, and the end of the last
    edges = set(starts)
    whole, parts = [], []
    for match in re.finditer(f"(?={re.escape(wanted)})", text):  # may overlap
        begin, end = match.start(), match.start() + len(wanted)
        first, last = bisect_right(starts, begin) - 1, bisect_right(starts, end - 1) - 1
        if begin in edges and end in edges:
            whole.append(Place(first, last + 1))
        # a string that crosses the edge of a word is no word: 研究生 in 研究 生命
        elif first == last and all(at in edges or _between(text, at) for at in (begin, end)):
            parts.append(Place(first, first + 1, tokens[first]))
    return whole or parts


def _between(text: str, at: int) -> bool:
    """Return whether a word may begin or end between two characters of a token."""
    return UNSPACED.search(text[at - 1 : at + 1]) is not None
