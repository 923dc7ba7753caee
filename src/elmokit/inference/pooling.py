"""Pool token vectors into one vector per sentence or phrase."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError

POOLINGS = ("mean", "max", "first-last")

Array = npt.NDArray[np.floating]


def pool(vectors: Array, pooling: str, bidirectional: bool) -> Array:
    """Pool token vectors (…, T, D) into (…, D); zeros if there are no tokens.

    "first-last" takes each direction where it has read all tokens: the forward half of the last
    vector and the backward half of the first.
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
        span: (start, end), end excluded, in characters or tokens.
        offsets: The (start, end) of each token in characters; None if the span counts tokens.
        n_tokens: The number of tokens in the sentence.
    """
    start, end = span
    if offsets is None:
        if not 0 <= start < end <= n_tokens:
            raise InputError(
                f"the span ({start}, {end}) is not within a sentence of {n_tokens} tokens; "
                f"pass 0 ≤ start < end ≤ {n_tokens}"
            )
        return slice(start, end)
    first = bisect_right(offsets, start, key=itemgetter(1))  # the first that ends after the start
    last = bisect_left(offsets, end, key=itemgetter(0))
    if start < 0 or start >= end or first >= last:
        raise InputError(
            f"the span ({start}, {end}) covers no token of the text; pass character offsets with "
            "0 ≤ start < end"
        )
    return slice(first, last)
