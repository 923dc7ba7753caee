"""One vector per sentence from the vectors of its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.arguments import one_of, strings, wrong
from elmokit.tasks.heads.masked import masked_max, masked_mean, masked_softmax, weighted_sum

POOLINGS = ("attention", "max", "mean", "min", "last")
"""Ways to pool. "last" takes each direction of a biLSTM where it has read all tokens."""


class AttentionPooling(nn.Module):
    """A weighted mean of tokens whose weights come from a learned query: softmax(x · q + b).

    Args:
        input_dim: D.
    """

    def __init__(self, input_dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(input_dim, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D) to (B, D); zeros for an empty sentence."""
        return weighted_sum(self.weights(x, mask), x)

    def weights(self, x: Tensor, mask: Tensor) -> Tensor:
        """The weight (B, T) of each token; zero in the padding."""
        return masked_softmax(self.query(x).squeeze(2), mask)


class SentencePooling(nn.Module):
    """Several ways to pool, side by side.

    Args:
        input_dim: D, even for "last".
        kinds: Some of :data:`POOLINGS`.
    """

    def __init__(self, input_dim: int, kinds: Sequence[str] = ("attention", "max", "mean")) -> None:
        super().__init__()
        self.kinds = [one_of(kind, "each of kinds", POOLINGS) for kind in strings(kinds, "kinds")]
        if not self.kinds:
            raise wrong("kinds", "at least one way to pool", kinds)
        self.attention = AttentionPooling(input_dim) if "attention" in self.kinds else None
        self.output_dim = input_dim * len(self.kinds)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D) to (B, output_dim), in the order of the kinds; zeros for an empty sentence."""
        return torch.cat([self._pooled(kind, x, mask) for kind in self.kinds], 1)

    def _pooled(self, kind: str, x: Tensor, mask: Tensor) -> Tensor:
        if kind == "max":
            return masked_max(x, mask)
        if kind == "min":
            return -masked_max(-x, mask)
        if kind == "mean":
            return masked_mean(x, mask)
        if kind == "last":
            return _last(x, mask)
        assert self.attention is not None
        return self.attention(x, mask)


def _last(x: Tensor, mask: Tensor) -> Tensor:
    """The forward half of the last token and the backward half of the first."""
    n, time, width = x.shape
    if not time:
        return x.new_zeros(n, width)
    last = (mask.sum(1) - 1).clamp(min=0)[:, None, None].expand(n, 1, width // 2)
    forward, backward = x.chunk(2, 2)
    ends = torch.cat([forward.gather(1, last).squeeze(1), backward[:, 0]], 1)
    return ends.masked_fill(~mask[:, :1], 0)
