"""Find a word or phrase among tokens."""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.errors import InputError


def find_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    """Return the positions where a phrase starts, regardless of case."""
    wanted = [token.casefold() for token in phrase]
    given = [token.casefold() for token in tokens]
    n = len(wanted)
    # the first token alone rules out nearly all positions
    return [i for i, token in enumerate(given) if token == wanted[0] and given[i : i + n] == wanted]


def require_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    """Return the positions as :func:`find_phrase` does; an error if there are none."""
    if not phrase:
        raise InputError("word= is empty; expected a word of the sentence")
    if found := find_phrase(tokens, phrase):
        return found
    shown = " ".join(tokens[:30]) + (" …" if len(tokens) > 30 else "")
    raise InputError(
        f"{' '.join(phrase)!r} is not among the tokens of {shown!r}; expected one of them"
    )
