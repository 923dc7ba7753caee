"""The passes of steps_torch.py as fused kernels for a GPU."""

# mypy does not know Triton's language, which gives Python's syntax another meaning.
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from elmokit.kernels.launch import launch

_BLOCK = 1024


@triton.jit
def _tanh(x, EXACT: tl.constexpr):
    # the short form has an error of up to 1e-7, which is relatively large near zero
    return libdevice.tanh(x) if EXACT else 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _clamp(x, clip):
    # NaN stays NaN, as in PyTorch, so broken weights are noticed
    x = tl.maximum(x, -clip, propagate_nan=tl.PropagateNan.ALL)
    return tl.minimum(x, clip, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _put(target, values, inside, WIDTH: tl.constexpr, PIECES: tl.constexpr):
    """Store values, or their bfloat16 pieces WIDTH apart (see packed._split_weight)."""
    if PIECES == 1:
        tl.store(target, values, inside)
    else:
        high = values.to(tl.bfloat16)
        rest = values - high.to(tl.float32)
        middle = rest.to(tl.bfloat16)
        low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
        tl.store(target, middle, inside)
        tl.store(target + WIDTH, low, inside)
        tl.store(target + 2 * WIDTH, high, inside)
        tl.store(target + 3 * WIDTH, middle, inside)
        tl.store(target + 4 * WIDTH, high, inside)
        tl.store(target + 5 * WIDTH, high, inside)


@triton.jit(do_not_specialize=["n", "h_apart", "x_apart", "operand_apart"])
def _begin(
    h, x, operand, n, h_apart, x_apart, operand_apart,
    P: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // P, at % P
    inside = row < n
    target = operand + d * operand_apart + row * (2 * P * PIECES) + column
    value = tl.load(x + d * x_apart + at, inside).to(tl.float32)
    _put(target, value, inside, 2 * P, PIECES)
    value = tl.load(h + d * h_apart + at, inside)
    _put(target + P, value, inside, 2 * P, PIECES)


@triton.jit(do_not_specialize=["n", "gates_apart", "c_apart", "next_apart", "y_apart"])
def _cell(
    gates, bias, c, c_next, y, n, gates_apart, c_apart, next_apart, y_apart, clip,
    H: tl.constexpr, PIECES: tl.constexpr, PARTS: tl.constexpr, KEEP: tl.constexpr,
    CLIP: tl.constexpr, EXACT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, unit = at // H, at % H
    inside = row < n
    own = gates + d * gates_apart + row * (4 * H) + unit
    add = bias + d * (4 * H) + unit
    i = tl.sigmoid(tl.load(own, inside).to(tl.float32) + tl.load(add))
    j = _tanh(tl.load(own + H, inside).to(tl.float32) + tl.load(add + H), EXACT)
    f = tl.sigmoid(tl.load(own + 2 * H, inside).to(tl.float32) + tl.load(add + 2 * H))
    o = tl.sigmoid(tl.load(own + 3 * H, inside).to(tl.float32) + tl.load(add + 3 * H))
    new = f * tl.load(c + d * c_apart + at, inside) + i * j
    if CLIP:
        new = _clamp(new, clip)
    tl.store(c_next + d * next_apart + at, new, inside)
    part: tl.constexpr = H // PARTS
    target = y + (d * PARTS + unit // part) * y_apart + row * (part * PIECES) + unit % part
    _put(target, o * _tanh(new, EXACT), inside, part, PIECES)
    if KEEP:
        tl.store(own, i, inside)
        tl.store(own + H, j, inside)
        tl.store(own + 2 * H, f, inside)
        tl.store(own + 3 * H, o, inside)


@triton.jit(
    do_not_specialize=["n", "m", "raw_apart", "out_apart", "h_apart", "x_apart", "operand_apart"]
)
def _output(
    raw, out, h, x, operand, n, m, raw_apart, out_apart, h_apart, x_apart, operand_apart, clip,
    P: tl.constexpr, PIECES: tl.constexpr, PARTS: tl.constexpr, TRAINING: tl.constexpr,
    CLIP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // P, at % P
    inside = row < n
    value = tl.load(raw + d * PARTS * raw_apart + at, inside).to(tl.float32)
    for part in tl.static_range(1, PARTS):
        value += tl.load(raw + (d * PARTS + part) * raw_apart + at, inside).to(tl.float32)
    if CLIP:
        value = _clamp(value, clip)
    tl.store(out + d * out_apart + at, value, inside)
    goes_on = row < m
    target = operand + d * operand_apart + row * (2 * P * PIECES) + column
    if not TRAINING:
        tl.store(h + d * h_apart + at, value, inside)
        following = tl.load(x + d * x_apart + at, goes_on).to(tl.float32)
        _put(target, following, goes_on, 2 * P, PIECES)
    _put(target + P, value, goes_on, 2 * P, PIECES)


@triton.jit(do_not_specialize=["n", "m", "rows_apart", "next_apart", "h_apart"])
def _output_gradient(
    d_out, d_next, d_h, raw, d_raw, n, m, rows_apart, next_apart, h_apart, clip,
    P: tl.constexpr, CLIP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // P, at % P
    inside, goes_on = row < n, row < m
    rows = d * rows_apart + at
    total = tl.load(d_out + rows, inside).to(tl.float32)
    after = d_next + d * next_apart + row * (2 * P) + P + column
    total += tl.load(after, goes_on, 0).to(tl.float32)
    total += tl.load(d_h + d * h_apart + at, inside & (row >= m), 0)
    if CLIP:
        value = tl.load(raw + rows, inside).to(tl.float32)
        total = tl.where(tl.abs(value) <= clip, total, 0)
    tl.store(d_raw + rows, total, inside)


@triton.jit(
    do_not_specialize=["n", "gates_apart", "next_apart", "c_apart", "d_y_apart", "d_c_apart"]
)
def _cell_gradient(
    gates, c_next, c, d_y, d_c, d_gates,
    n, gates_apart, next_apart, c_apart, d_y_apart, d_c_apart, clip,
    H: tl.constexpr, CLIP: tl.constexpr, EXACT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, unit = at // H, at % H
    inside = row < n
    place = d * gates_apart + row * (4 * H) + unit
    own = gates + place
    i = tl.load(own, inside).to(tl.float32)
    j = tl.load(own + H, inside).to(tl.float32)
    f = tl.load(own + 2 * H, inside).to(tl.float32)
    o = tl.load(own + 3 * H, inside).to(tl.float32)
    after = tl.load(c_next + d * next_apart + at, inside)
    before = tl.load(c + d * c_apart + at, inside)
    squashed = _tanh(after, EXACT)
    dy = tl.load(d_y + d * d_y_apart + at, inside).to(tl.float32)
    own_d_c = d_c + d * d_c_apart + at
    d_cell = tl.load(own_d_c, inside) + dy * o * (1 - squashed * squashed)
    if CLIP:
        d_cell = tl.where(tl.abs(after) < clip, d_cell, 0)
    tl.store(own_d_c, d_cell * f, inside)
    target = d_gates + place
    tl.store(target, d_cell * j * i * (1 - i), inside)
    tl.store(target + H, d_cell * i * (1 - j * j), inside)
    tl.store(target + 2 * H, d_cell * before * f * (1 - f), inside)
    tl.store(target + 3 * H, dy * squashed * o * (1 - o), inside)


def begin(h: Tensor, x: Tensor, operand: Tensor, pieces: int) -> None:
    """See :mod:`elmokit.kernels.steps_torch`."""
    directions, n, width = h.shape
    launch(
        _begin,
        _grid(n * width, directions),
        (h, x, operand),
        (n, h.stride(0), x.stride(0), operand.stride(0)),
        (width, pieces, _BLOCK),
    )


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
    """See :mod:`elmokit.kernels.steps_torch`."""
    directions, n, width = gates.shape
    width //= 4
    exact = gates.dtype == torch.float32
    launch(
        _cell,
        _grid(n * width, directions),
        (gates, bias, c, c_next, y),
        (n, gates.stride(0), c.stride(0), c_next.stride(0), y.stride(0), clip or 0.0),
        (width, pieces, len(y) // directions, keep, clip is not None, exact, _BLOCK),
    )


def output(
    raw: Tensor,
    out: Tensor,
    h: Tensor | None,
    x: Tensor,
    operand: Tensor,
    clip: float | None,
    pieces: int,
) -> None:
    """See :mod:`elmokit.kernels.steps_torch`."""
    n, width = raw.shape[1:]
    directions = len(out)
    training = h is None
    h = raw if h is None else h  # unused in training, but the kernel needs a pointer
    m = operand.shape[1] if training else x.shape[1]
    apart = tuple(t.stride(0) for t in (raw, out, h, x, operand))
    launch(
        _output,
        _grid(n * width, directions),
        (raw, out, h, x, operand),
        (n, m, *apart, clip or 0.0),
        (width, pieces, len(raw) // directions, training, clip is not None, _BLOCK),
    )


def output_gradient(
    d_out: Tensor, d_next: Tensor, d_h: Tensor, raw: Tensor, d_raw: Tensor, clip: float | None
) -> None:
    """See :mod:`elmokit.kernels.steps_torch`."""
    directions, n, width = raw.shape
    apart = raw.stride(0), d_next.stride(0), d_h.stride(0)
    launch(
        _output_gradient,
        _grid(n * width, directions),
        (d_out, d_next, d_h, raw, d_raw),
        (n, d_next.shape[1], *apart, clip or 0.0),
        (width, clip is not None, _BLOCK),
    )


def cell_gradient(
    gates: Tensor,
    c_next: Tensor,
    c: Tensor,
    d_y: Tensor,
    d_c: Tensor,
    d_gates: Tensor,
    clip: float | None,
) -> None:
    """See :mod:`elmokit.kernels.steps_torch`."""
    directions, n, width = gates.shape
    width //= 4
    apart = tuple(t.stride(0) for t in (gates, c_next, c, d_y, d_c))
    launch(
        _cell_gradient,
        _grid(n * width, directions),
        (gates, c_next, c, d_y, d_c, d_gates),
        (n, *apart, clip or 0.0),
        (width, clip is not None, gates.dtype == torch.float32, _BLOCK),
    )


def _grid(n_values: int, directions: int) -> tuple[int, int]:
    return triton.cdiv(n_values, _BLOCK), directions
