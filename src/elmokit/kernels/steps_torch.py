"""The passes of packed.py over the results of its products, in PyTorch.

Tensors have directions first and rows second (R, n, …). If a tensor has more rows than the step
(≥ n), only the first n are used. Gates are in the published order: input i, candidate j, forget f,
output o.
"""

from __future__ import annotations

import torch
from torch import Tensor


def begin(h: Tensor, x: Tensor, operand: Tensor, pieces: int) -> None:
    """Write input x and state h (R, n, P) side by side into the operand of the first product."""
    _put(operand[:, : h.shape[1]], torch.cat([x.to(h.dtype), h], -1), pieces)


def cell(
    gates: Tensor,
    bias: Tensor,
    c: Tensor,
    c_next: Tensor,
    y: Tensor,
    clip: float | None,
    pieces: int,
    keep: bool,
) -> None:
    """Compute the cells and their output from the gates.

    Args:
        gates: (R, n, 4H) without the bias. If ``keep`` is set, replaced by the activated gates.
        bias: (R, 4H).
        c: Cells (R, ≥ n, H) before the step, in float32.
        c_next: Receives the cells after the step; may be c.
        y: Receives the output of the cells before the projection: (R, ≥ n, H), or
            (R · K, ≥ n, H / K) if the projection is summed in K parts; ``pieces`` times as wide if
            split.
        clip: Bound of the cells.
        pieces: 1, or 6 to split y into bfloat16 pieces.
        keep: Whether the backward pass needs the gates.
    """
    n = gates.shape[1]
    i, j, f, o = (gates.float() + bias[:, None]).chunk(4, -1)
    i, j, f, o = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid()
    new = f * c[:, :n] + i * j
    if clip is not None:
        new = new.clamp(-clip, clip)
    c_next[:, :n] = new
    parts = torch.stack((o * new.tanh()).chunk(len(y) // len(gates), -1), 1).flatten(0, 1)
    _put(y[:, :n], parts, pieces)
    if keep:
        gates.copy_(torch.cat([i, j, f, o], -1))


def output(
    raw: Tensor,
    out: Tensor,
    h: Tensor | None,
    x: Tensor,
    operand: Tensor,
    clip: float | None,
    pieces: int,
) -> None:
    """Compute the outputs from the projections, and prepare the next step.

    Args:
        raw: Projections (R, n, P) before clipping, or (R · K, n, P) in K parts.
        out: Receives the outputs (R, ≥ n, P).
        h: Receives the state (R, ≥ n, P), in float32; None in training.
        x: Inputs (R, m, P) of the next step, m ≤ n. No rows in training, where the operand already
            contains them.
        operand: The operand of the next step's first product: (R, ≥ m, 2P), ``pieces`` times as
            wide if split; exactly m rows in training.
        clip: Bound of the projection.
        pieces: 1, or 6 to split the operand into bfloat16 pieces.
    """
    n, width = raw.shape[1:]
    value = raw.float().view(len(out), -1, n, width).sum(1)
    if clip is not None:
        value = value.clamp(-clip, clip)
    out[:, :n] = value
    if h is not None:
        h[:, :n] = value
        if m := x.shape[1]:
            begin(value[:, :m], x, operand, pieces)
    else:
        operand[..., width:] = value[:, : operand.shape[1]]


def output_gradient(
    d_out: Tensor, d_next: Tensor, d_h: Tensor, raw: Tensor, d_raw: Tensor, clip: float | None
) -> None:
    """Compute the gradient of the projections before clipping.

    Args:
        d_out: Gradient of the outputs (R, n, P).
        d_next: Gradient of the next step's operand (R, m, 2P), m ≤ n.
        d_h: Gradient of the final states (R, ≥ n, P); used for the sentences that end here.
        raw: Projections (R, n, P) before clipping.
        d_raw: Receives the result (R, n, P).
        clip: Bound of the projection.
    """
    n, width = raw.shape[1:]
    m = d_next.shape[1]
    total = d_out.float() + torch.cat([d_next[..., width:].float(), d_h[:, m:n]], 1)
    if clip is not None:
        total = torch.where(raw.float().abs() <= clip, total, 0)
    d_raw.copy_(total)


def cell_gradient(
    gates: Tensor,
    c_next: Tensor,
    c: Tensor,
    d_y: Tensor,
    d_c: Tensor,
    d_gates: Tensor,
    clip: float | None,
) -> None:
    """Compute the gradient of the gates before their activations.

    Args:
        gates: Activated gates (R, n, 4H).
        c_next: Cells (R, n, H) after the step.
        c: Cells (R, ≥ n, H) before the step.
        d_y: Gradient of the output of the cells (R, ≥ n, H).
        d_c: Gradient of the cells (R, ≥ n, H) after the step; replaced by the one before it.
        d_gates: Receives the result (R, n, 4H).
        clip: Bound of the cells.
    """
    n = gates.shape[1]
    i, j, f, o = gates.float().chunk(4, -1)
    squashed, d_y = c_next.tanh(), d_y[:, :n].float()
    d_cell = d_c[:, :n] + d_y * o * (1 - squashed * squashed)
    if clip is not None:
        d_cell = torch.where(c_next.abs() < clip, d_cell, 0)
    d_c[:, :n] = d_cell * f
    parts = [
        d_cell * j * i * (1 - i),
        d_cell * i * (1 - j * j),
        d_cell * c[:, :n] * f * (1 - f),
        d_y * squashed * o * (1 - o),
    ]
    d_gates.copy_(torch.cat(parts, -1))


def three_pieces(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Split float32 numbers into sums of three bfloat16 numbers, the largest first."""
    high = values.bfloat16()
    rest = values - high.float()
    middle = rest.bfloat16()
    return high, middle, (rest - middle.float()).bfloat16()


def _put(target: Tensor, values: Tensor, pieces: int) -> None:
    if pieces == 1:
        target.copy_(values)
    else:
        high, middle, low = three_pieces(values)
        target.copy_(torch.cat([middle, low, high, middle, high, high], -1))
