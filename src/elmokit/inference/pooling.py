"""Many token vectors to one: of a sentence, or of a phrase in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError

POOLINGS = ("mean", "max", "first-last")

Array = npt.NDArray[np.floating]


def check_pooling(pooling: str) -> None:
    """Raise for a name that is not a pooling."""
    if pooling not in POOLINGS:
        raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, not {pooling!r}")


def pool(vectors: Array, pooling: str, bidirectional: bool) -> Array:
    """Vectors (…, T, D) of the tokens of a sentence or phrase to one (…, D); zeros for no tokens.

    first-last is what the two language models know after reading it all: the forward half at the
    last token and the backward half at the first.
    """
    if vectors.shape[-2] == 0:
        return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), vectors.dtype)
    if pooling == "mean":
        return vectors.mean(-2, dtype=np.float32).astype(vectors.dtype)
    if pooling == "max":
        return vectors.max(-2)
    half = vectors.shape[-1] // 2 if bidirectional else vectors.shape[-1]
    return np.concatenate([vectors[..., -1, :half], vectors[..., 0, half:]], -1)


def tokens_of_span(
    span: tuple[int, int], offsets: Sequence[tuple[int, int]] | None, n_tokens: int
) -> slice:
    """The tokens a span covers.

    Args:
        span: (start, end) with end excluded, in characters or in tokens.
        offsets: Character offsets of the tokens; None where the span counts tokens.
        n_tokens: Tokens of the sentence.
    """
    start, end = span
    if offsets is None:
        if not 0 <= start < end <= n_tokens:
            raise InputError(
                f"the span ({start}, {end}) does not lie in a sentence of {n_tokens} tokens; give "
                "0 ≤ start < end ≤ tokens"
            )
        return slice(start, end)
    covered = [i for i, (s, e) in enumerate(offsets) if s < end and start < e]
    if start < 0 or start >= end or not covered:
        raise InputError(
            f"the span ({start}, {end}) covers no token of the text; give character offsets with "
            "0 ≤ start < end"
        )
    return slice(covered[0], covered[-1] + 1)
