"""Where a word or phrase stands among tokens."""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.errors import InputError


def find_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    """Where a phrase begins among tokens; upper and lower case count as the same."""
    wanted = [token.casefold() for token in phrase]
    given = [token.casefold() for token in tokens]
    n = len(wanted)
    # the first token alone rules nearly all places out
    return [i for i, token in enumerate(given) if token == wanted[0] and given[i : i + n] == wanted]


def require_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    """As :func:`find_phrase`, but an error where there is no such place."""
    if not phrase:
        raise InputError("the word to look for is empty")
    if found := find_phrase(tokens, phrase):
        return found
    shown = " ".join(tokens[:30]) + (" …" if len(tokens) > 30 else "")
    raise InputError(
        f"{' '.join(phrase)!r} is not among the tokens of {shown!r}; give a word as it stands there"
    )
