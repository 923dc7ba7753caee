"""softmax_torch.py as a fused GPU kernel, which reads logits twice and writes them once."""

# mypy does not know Triton's language, which gives Python's syntax another meaning.
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096
_WARPS = 8


@triton.jit
def _logits(
    logits, bias, ids, target, start,
    N: tl.constexpr, SAMPLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    column = start + tl.arange(0, BLOCK)
    inside = column < N
    x = tl.load(logits + column, inside, 0).to(tl.float32) + tl.load(bias + column, inside, 0)
    counts = inside
    if SAMPLED:
        counts = inside & (tl.load(ids + column, inside, -1) != target)
    return tl.where(counts, x, -float("inf"))


@triton.jit(do_not_specialize=["apart"])
def _cross_entropy(
    logits, bias, targets, ids, own, losses, d_own, apart,
    N: tl.constexpr, SAMPLED: tl.constexpr, GRADIENT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits += row * apart
    target = tl.load(targets + row)
    if SAMPLED:
        mine = tl.load(own + row)
        total = tl.full((), 1, tl.float32)
    else:
        mine = tl.load(logits + target).to(tl.float32) + tl.load(bias + target)
        total = tl.full((), 0, tl.float32)
    largest = mine
    for start in range(0, N, BLOCK):
        x = _logits(logits, bias, ids, target, start, N, SAMPLED, BLOCK)
        larger = tl.maximum(largest, tl.max(x, 0), propagate_nan=tl.PropagateNan.ALL)
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(x - larger), 0)
        largest = larger
    norm = largest + tl.log(total)
    tl.store(losses + row, norm - mine)
    if GRADIENT:
        if SAMPLED:
            tl.store(d_own + row, tl.exp(mine - norm) - 1)
        for start in range(0, N, BLOCK):
            x = _logits(logits, bias, ids, target, start, N, SAMPLED, BLOCK)
            share = tl.exp(x - norm)
            column = start + tl.arange(0, BLOCK)
            if not SAMPLED:
                share = tl.where(column == target, share - 1, share)
            tl.store(logits + column, share, column < N)


def cross_entropy(
    logits: Tensor,
    bias: Tensor,
    targets: Tensor,
    ids: Tensor | None,
    own: Tensor | None,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """See :mod:`elmokit.kernels.softmax_torch`."""
    rows, n = logits.shape
    losses = torch.empty(rows, device=logits.device)
    sampled = ids is not None
    d_own = torch.empty_like(losses) if sampled else None
    unused = losses
    _cross_entropy[(rows,)](
        logits, bias, targets, ids if sampled else targets, own if sampled else unused,
        losses, d_own if sampled else unused, logits.stride(0), n, sampled, gradient, _BLOCK,
        num_warps=_WARPS,
    )  # fmt: skip
    return losses, d_own
