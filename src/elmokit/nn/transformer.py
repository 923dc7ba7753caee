"""A transformer in place of the LSTMs: each direction attends to the tokens it has read so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ContextConfig
from elmokit.kernels.ragged import Ragged
from elmokit.nn.context import BiLMState, LayerRows

_LONGEST_WAVE = 10_000.0


class TransformerBlock(nn.Module):
    """Causal self-attention, then a feed-forward layer, each added to its input.

    Positions enter by rotating queries and keys. Only distances matter, and sentences can have any
    length.

    Args:
        width: P.
        inner: Width of the feed-forward layer.
        n_heads: Attention heads; P / n_heads is even.
    """

    def __init__(self, width: int, inner: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.feed_in, self.feed_out = nn.Linear(width, inner), nn.Linear(inner, width)
        if not self.feed_out.weight.is_meta:
            for linear in (self.attention_out, self.feed_out):  # a new layer adds nothing at first
                nn.init.zeros_(linear.weight)
                nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """(B, T, P) in reading order to (B, T, P)."""
        n, time, width = x.shape
        gates = self.attention_in(self.attention_norm(x))
        heads = self.n_heads, width // self.n_heads
        q, k, v = gates.view(n, time, 3, *heads).permute(2, 0, 3, 1, 4)
        turned = F.scaled_dot_product_attention(_rotate(q), _rotate(k), v, is_causal=True)
        seen = self.attention_out(turned.transpose(1, 2).reshape(n, time, width))
        x = x + F.dropout(seen, dropout, training=dropout > 0)
        fed = self.feed_out(F.gelu(self.feed_in(self.feed_norm(x))))
        return x + F.dropout(fed, dropout, training=dropout > 0)


class TransformerContext:
    """Transformer blocks as a :class:`~elmokit.nn.context.Context`.

    Args:
        stacks: The blocks of each direction.
        config: Not needed.
    """

    def __init__(self, stacks: Sequence[nn.ModuleList], config: ContextConfig) -> None:
        self._stacks = stacks

    @staticmethod
    def layers(config: ContextConfig) -> nn.ModuleList:
        """New blocks for one direction."""
        sizes = config.projection_dim, config.cell_dim, config.n_heads
        return nn.ModuleList(TransformerBlock(*sizes) for _ in range(config.n_layers))

    def zero_state(self, n: int) -> BiLMState:
        """Empty: a transformer carries no state between sentences."""
        nothing = next(self._stacks[0].parameters()).new_zeros(len(self._stacks), n, 0)
        return BiLMState([(nothing, nothing) for _ in self._stacks[0]])

    def read(
        self,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState | None = None,
        upto: int | None = None,
        dropout: float = 0.0,
        precision: str = "float32",
    ) -> Iterator[LayerRows]:
        """See :class:`~elmokit.nn.context.Context`; padding comes last and causality hides it."""
        xs = [F.dropout(ragged.unpack(x), dropout, dropout > 0) for x in rows]
        state = self.zero_state(len(ragged.lengths)).layers[0]
        for blocks in list(zip(*self._stacks, strict=True))[:upto]:
            xs = [block(x, dropout) for block, x in zip(blocks, xs, strict=True)]
            # normalised, because the sum passed from layer to layer grows
            yield LayerRows([ragged.pack(F.layer_norm(x, x.shape[-1:])) for x in xs], state)


def _rotate(x: Tensor) -> Tensor:
    """Pairs of numbers of x (B, heads, T, even), rotated by an angle that grows with position."""
    half = x.shape[-1] // 2
    speeds = _LONGEST_WAVE ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
