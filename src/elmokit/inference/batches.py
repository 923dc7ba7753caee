"""Which sentences run together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def plan_batches(
    indices: Iterable[int], lengths: Sequence[int], max_tokens: int, max_sentences: int
) -> Iterator[list[int]]:
    """Group sentences of like length, longest first, within a budget of padded tokens.

    Longest first, because then memory is highest in the first batch, and a failure comes at once.

    Args:
        indices: Which sentences.
        lengths: Tokens of every sentence.
        max_tokens: Most padded tokens (sentences × longest) of a batch; one longer sentence is a
            batch of its own.
        max_sentences: Most sentences of a batch.

    Yields:
        The indices, each exactly once.
    """
    order = sorted(indices, key=lambda i: -lengths[i])  # stable: ties keep their order
    batch: list[int] = []
    for i in order:
        longest = lengths[batch[0]] if batch else lengths[i]
        if batch and (len(batch) == max_sentences or (len(batch) + 1) * longest > max_tokens):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
