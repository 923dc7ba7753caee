"""The LSTMs of all directions at once, with and without gradients, on packed rows.

A step is two matrix products by PyTorch and two passes over their results. On a GPU each pass is
one fused kernel of steps_triton.py; steps_torch.py has the same passes in PyTorch, for other
devices and as the reference for the kernels. All R directions share batched products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from elmokit.kernels import steps_torch
from elmokit.kernels.ragged import Ragged
from elmokit.kernels.weights import LSTMWeights

SPLIT_ROWS = 128
"""From this many sentences on, float32 products are computed as sums of bfloat16 products."""

_PIECES = 6  # bfloat16 pieces of a split float32 number; see _split_weight
_LONGEST_SUM = 1024  # units of a projection summed in one product of split numbers

Stacks = Sequence[Sequence[LSTMWeights]]
"""The LSTMs of each direction; each reads the output of the one before."""


@dataclass(frozen=True)
class _Layer:
    """The weights of one layer, for all directions."""

    weight: Tensor  # (R, 4H, 2P): for the input, then for the state
    bias: Tensor  # (R, 4H) in float32, forget bias included
    projection: Tensor  # (R, P, H)


def can_run(stacks: Stacks, x: Tensor) -> bool:
    """Whether all LSTMs have the shapes and types this path needs.

    Args:
        stacks: The LSTMs of each direction.
        x: Their input (…, P).
    """
    lstms = [lstm for stack in stacks for lstm in stack]
    alike = {(m.cell_dim, m.cell_clip, m.proj_clip, m.forget_bias) for m in lstms}
    return (
        len(alike) <= 1
        and all(
            lstm.projection is not None
            and lstm.input_dim == lstm.output_dim == x.shape[-1]
            and all(t.dtype in (torch.float32, x.dtype) for t in lstm.tensors)
            for lstm in lstms
        )
        and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
    )


def run(
    stacks: Stacks,
    x: Tensor,
    ragged: Ragged,
    starts: Sequence[tuple[Tensor, Tensor]],
    skip: bool,
    gradients: bool,
    steps: ModuleType = steps_torch,
    dropout: float = 0.0,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Run all directions over packed rows; each direction reads its own rows.

    Args:
        stacks: The LSTMs of each direction.
        x: Rows (R, N, P) in the order in which each direction reads them.
        ragged: How the rows are arranged.
        starts: The states (R, B, P) and (R, B, H) each layer starts from, in float32, the longest
            sentence first.
        skip: Whether every layer but the first adds its input to its output.
        gradients: Whether gradients may be needed.
        steps: The passes over the products' results.
        dropout: Share of each layer's input set to zero; the residual adds the dropped input.

    Yields:
        For each layer its rows (R, N, P), and both states after each sentence.
    """
    split = x.dtype is torch.float32 and not gradients and _can_split(x, ragged)
    for number, lstms in enumerate(zip(*stacks, strict=True)):
        x = F.dropout(x, dropout) if dropout else x
        h, c = starts[number]
        layer = _gather(lstms, x.dtype)
        clips = (lstms[0].cell_clip, lstms[0].proj_clip)
        if gradients:
            out, h, c = _Steps.apply(  # type: ignore[no-untyped-call]
                x, *_tensors(layer), h, c, ragged, clips, steps
            )
        else:
            out, h, c = _run(x, layer, h, c, ragged, clips, steps, split)
        x = out + x if skip and number > 0 else out
        yield x, h, c


def _can_split(x: Tensor, ragged: Ragged) -> bool:
    """Whether bfloat16 products pay off: on GPUs made for them, with enough rows."""
    return (
        x.device.type == "cuda"
        and ragged.counts[:1] >= [SPLIT_ROWS]
        and torch.cuda.get_device_capability(x.device) >= (8, 0)
        and _can_sum_in_float32(x.device)
    )


@cache
def _can_sum_in_float32(device: torch.device) -> bool:
    """Whether this PyTorch returns a product of bfloat16 numbers in float32."""
    some = torch.ones(1, 8, 8, dtype=torch.bfloat16, device=device)
    try:
        _multiply_split(some, some, torch.empty(1, 8, 8, device=device))
    except (TypeError, RuntimeError):
        return False
    return True


def _gather(lstms: Sequence[LSTMWeights], dtype: torch.dtype) -> _Layer:
    """The weights of all directions together, ready to multiply.

    Built for every batch, which takes a hundredth of its time, so they are never out of date.
    """
    weights = [torch.cat([m.input_weight, m.state_weight], 1).to(dtype) for m in lstms]
    bias = torch.stack([m.bias for m in lstms]).float()
    extra = torch.zeros_like(bias[0])
    extra[2 * lstms[0].cell_dim : 3 * lstms[0].cell_dim] = lstms[0].forget_bias
    projections = [m.projection.to(dtype) for m in lstms if m.projection is not None]
    return _Layer(torch.stack(weights), bias + extra, torch.stack(projections))


def _tensors(layer: _Layer) -> tuple[Tensor, Tensor, Tensor]:
    return layer.weight, layer.bias, layer.projection


Clips = tuple[float | None, float | None]


def _run(
    x: Tensor,
    layer: _Layer,
    h: Tensor,
    c: Tensor,
    ragged: Ragged,
    clips: Clips,
    steps: ModuleType,
    split: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """All steps of a layer without gradients, reusing the same buffers.

    Args:
        x: Rows (R, N, P).
        layer: The weights.
        h: The state (R, B, P) to start from, in float32.
        c: The cells (R, B, H) to start from, in float32.
        ragged: How the rows are arranged.
        clips: Bounds of the cells and of the projection.
        steps: The passes over the products' results.
        split: Whether to compute float32 products as sums of bfloat16 products.

    Returns:
        Outputs (R, N, P), and both states after each sentence.
    """
    directions, _, width = x.shape
    cell_dim, most = c.shape[2], max(ragged.counts, default=0)
    pieces, parts = (_PIECES, _parts(cell_dim)) if split else (1, 1)
    inner = torch.bfloat16 if split else x.dtype
    weight, projection = layer.weight, layer.projection
    if split:
        weight = _split_weight(weight)
        projection = torch.stack(projection.chunk(parts, 2), 1).flatten(0, 1)
        projection = _split_weight(projection)
    weight, projection = weight.transpose(1, 2), projection.transpose(1, 2)
    operand = x.new_empty(directions, most, pieces * 2 * width, dtype=inner)
    gates = x.new_empty(directions, most, 4 * cell_dim)
    y = x.new_empty(directions * parts, most, pieces * cell_dim // parts, dtype=inner)
    raw = x.new_empty(directions * parts, most, width)
    h, c = h.clone(), c.clone()
    out = torch.empty_like(x)
    counts, starts = [*ragged.counts, 0], ragged.starts
    multiply = _multiply_split if split else _multiply
    running = -1
    for t, n in enumerate(ragged.counts):
        if t == 0:
            steps.begin(h[:, :n], x[:, :n], operand, pieces)
        if n != running:  # creating views takes as long as a step of a small model
            running = n
            some_operand, some_gates, some_y, some_raw = (
                buffer[:, :n] for buffer in (operand, gates, y, raw)
            )
        multiply(some_operand, weight, some_gates)
        steps.cell(some_gates, layer.bias, c, c, some_y, clips[0], pieces, False)
        multiply(some_y, projection, some_raw)
        following = x[:, starts[t + 1] : starts[t + 1] + counts[t + 1]]
        steps.output(some_raw, out[:, starts[t] :], h, following, operand, clips[1], pieces)
    return out, h, c


def _multiply(a: Tensor, b: Tensor, out: Tensor) -> None:
    torch.bmm(a, b, out=out)


def _multiply_split(a: Tensor, b: Tensor, out: Tensor) -> None:
    torch.bmm(a, b, torch.float32, out=out)


def _parts(cell_dim: int) -> int:
    """The number of equal parts to sum a projection in, each near _LONGEST_SUM units or fewer."""
    parts = max(1, cell_dim // _LONGEST_SUM)
    while cell_dim % parts:
        parts -= 1
    return parts


def _split_weight(weight: Tensor) -> Tensor:
    """A float32 matrix (…, K) as bfloat16 pieces (…, 6K) for products with split operands.

    Three bfloat16 numbers hold the 24 bits of a float32 one: a = h + m + l. Of the nine products of
    two such sums, these six agree with the full product within float32's own rounding. The
    operand's pieces are m, l, h, m, h, h, which puts the large products last: the GPU truncates
    what it adds to a large sum, always in the same direction, so such additions must be few.
    """
    high, middle, low = steps_torch.three_pieces(weight)
    return torch.cat([middle, high, low, high, middle, high], -1)


class _Steps(torch.autograd.Function):
    """All steps of a layer, with gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        projection: Tensor,
        h: Tensor,
        c: Tensor,
        ragged: Ragged,
        clips: Clips,
        steps: ModuleType,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As :func:`_run`, keeping what the backward pass needs."""
        directions, rows, width = x.shape
        cell_dim = c.shape[2]
        operand = x.new_empty(directions, rows, 2 * width)
        operand[..., :width] = x
        gates = x.new_empty(directions, rows, 4 * cell_dim)
        cells = c.new_empty(directions, rows, cell_dim)
        y = x.new_empty(directions, rows, cell_dim)
        raw, out = torch.empty_like(x), torch.empty_like(x)
        counts, nothing = ragged.counts, x[:, :0]
        if counts:
            operand[:, : counts[0], width:] = h[:, : counts[0]]
        to_gates, to_output = weight.transpose(1, 2), projection.transpose(1, 2)
        # all views at once: one by one they take as long as the steps of a small model
        operands = (*operand.split_with_sizes(counts, 1), operand[:, :0])
        every = zip(
            *(buffer.split_with_sizes(counts, 1) for buffer in (gates, cells, y, raw, out)),
            strict=True,
        )
        before = c
        for t, (some_gates, some_cells, some_y, some_raw, some_out) in enumerate(every):
            torch.bmm(operands[t], to_gates, out=some_gates)
            steps.cell(some_gates, bias, before, some_cells, some_y, clips[0], 1, True)
            torch.bmm(some_y, to_output, out=some_raw)
            steps.output(some_raw, some_out, None, nothing, operands[t + 1], clips[1], 1)
            before = some_cells
        ctx.save_for_backward(operand, gates, cells, y, raw, weight, projection, c)
        ctx.ragged, ctx.clips, ctx.steps = ragged, clips, steps
        return out, ragged.last(out.float(), h), ragged.last(cells, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all inputs of the forward pass."""
        operand, gates, cells, y, raw, weight, projection, c = ctx.saved_tensors
        ragged, clips, steps = ctx.ragged, ctx.clips, ctx.steps
        counts, width = ragged.counts, raw.shape[2]
        d_out, d_h = d_out.contiguous(), d_h.contiguous()
        d_c = d_c.clone(memory_format=torch.contiguous_format)
        d_raw, d_gates = torch.empty_like(raw), torch.empty_like(gates)
        d_operand = torch.empty_like(operand)
        d_y = y.new_empty(len(y), max(counts, default=0), y.shape[2])
        befores = (c, *cells.split_with_sizes(counts, 1))
        d_operands = (*d_operand.split_with_sizes(counts, 1), d_operand[:, :0])
        every = list(
            zip(
                *(b.split_with_sizes(counts, 1) for b in (d_out, raw, d_raw, gates, d_gates)),
                strict=True,
            )
        )
        for t in reversed(range(len(counts))):
            some_d_out, some_raw, some_d_raw, some_gates, some_d_gates = every[t]
            following = d_operands[t + 1]
            steps.output_gradient(some_d_out, following, d_h, some_raw, some_d_raw, clips[1])
            torch.bmm(some_d_raw, projection, out=d_y[:, : counts[t]])
            steps.cell_gradient(
                some_gates, befores[t + 1], befores[t], d_y, d_c, some_d_gates, clips[0]
            )
            torch.bmm(some_d_gates, weight, out=d_operands[t])
        d_start = d_h
        if counts:
            d_start = torch.cat([d_operand[:, : counts[0], width:].float(), d_h[:, counts[0] :]], 1)
        _, for_weight, for_bias, for_projection, *_ = ctx.needs_input_grad
        return (
            d_operand[..., :width],
            torch.bmm(d_gates.transpose(1, 2), operand) if for_weight else None,
            d_gates.sum(1, dtype=torch.float32) if for_bias else None,
            torch.bmm(d_raw.transpose(1, 2), y) if for_projection else None,
            d_start,
            d_c,
            None,
            None,
            None,
        )
