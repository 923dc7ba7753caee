"""A transformer in place of the LSTMs: each direction attends to what it has read so far."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.nn.lstm import State

_LONGEST_WAVE = 10_000.0


class TransformerBlock(nn.Module):
    """Attention to the tokens read before, then a feed-forward layer, each added to its input.

    Positions enter by rotating queries and keys, so that only distances matter and no sentence is
    too long.

    Args:
        width: P.
        inner: Width of the feed-forward layer.
        n_heads: Heads of attention; P / n_heads is even.
        reverse: Whether sentences are read from their ends.
    """

    def __init__(self, width: int, inner: int, n_heads: int, reverse: bool = False) -> None:
        super().__init__()
        self.n_heads, self.reverse, self.precision = n_heads, reverse, "float32"
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.feed_in, self.feed_out = nn.Linear(width, inner), nn.Linear(inner, width)
        if not self.feed_out.weight.is_meta:
            for linear in (self.attention_out, self.feed_out):  # so that layers begin as nothing
                nn.init.zeros_(linear.weight)
                nn.init.zeros_(linear.bias)

    def zero_state(self, n: int) -> State:
        """Nothing: it carries no state from sentence to sentence."""
        nothing = self.feed_norm.bias.new_zeros(n, 0)
        return nothing, nothing

    def forward(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        """(B, T, P) in reading order to (B, T, P)."""
        n, time, width = x.shape
        gates = self.attention_in(self.attention_norm(x))
        q, k, v = gates.view(n, time, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        turned = F.scaled_dot_product_attention(_rotate(q), _rotate(k), v, is_causal=True)
        seen = self.attention_out(turned.transpose(1, 2).reshape(n, time, width))
        x = x + F.dropout(seen, dropout, training=dropout > 0)
        fed = self.feed_out(F.gelu(self.feed_in(self.feed_norm(x))))
        return x + F.dropout(fed, dropout, training=dropout > 0)


def run_blocks(blocks: Sequence[TransformerBlock], x: Tensor, dropout: float = 0.0) -> list[Tensor]:
    """Outputs (B, T, P) of all layers of a direction over x (B, T, P), in reading order.

    Each is normalised, as the sum that goes from layer to layer grows.
    """
    outputs = []
    for block in blocks:
        x = block(x, dropout)
        outputs.append(F.layer_norm(x, x.shape[-1:]))
    return outputs


def run_direction(
    blocks: Sequence[TransformerBlock], tokens: Tensor, lengths: Tensor
) -> list[Tensor]:
    """Outputs (B, T, P) of all layers over tokens (B, T, P), zero behind each sentence's end."""
    lengths = lengths.to(tokens.device)[:, None]
    place = torch.arange(tokens.shape[1], device=tokens.device)
    inside = place < lengths
    order = torch.where(inside, lengths - 1 - place, place)[..., None].expand_as(tokens)
    reverse = bool(blocks) and blocks[0].reverse
    x = tokens.gather(1, order) if reverse else tokens
    outputs = run_blocks(blocks, x)
    if reverse:
        outputs = [output.gather(1, order) for output in outputs]
    return [torch.where(inside[..., None], output, 0) for output in outputs]


def _rotate(x: Tensor) -> Tensor:
    """Pairs of numbers of x (B, heads, T, even) turned by an angle that grows with the place."""
    half = x.shape[-1] // 2
    speeds = _LONGEST_WAVE ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
