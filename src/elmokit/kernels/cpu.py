"""The LSTM on a CPU, without gradients.

Sentences are sorted by length, so that at every step those still running are the first rows, and
no padding is computed. The input's share of the gates is one product for many steps. Weights are
kept transposed, which MKL multiplies up to twice as fast at small batches, and with the three
sigmoid gates side by side; all steps work in the same buffers.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from elmokit.nn.lstm import ProjectedLSTM, State
from elmokit.nn.weight_watch import WeightWatch

_ROWS_AHEAD = 512  # rows of the input product at once: enough for its full speed, and no more


class Packed(NamedTuple):
    """An LSTM's weights as this path wants them: gates i, f, o, j, transposed."""

    input: Tensor  # (input_dim, 4H)
    state: Tensor  # (P, 4H)
    bias: Tensor  # (4H,), the forget bias included
    projection: Tensor | None  # (H, P)


_packed: WeakKeyDictionary[ProjectedLSTM, tuple[WeightWatch, Packed]] = WeakKeyDictionary()


def pack(lstm: ProjectedLSTM) -> Packed:
    """The packed weights of an LSTM, made anew only when its weights have changed."""
    watch, packed = _packed.get(lstm, (None, None))
    if watch is not None and packed is not None and not watch.changed():
        return packed
    watch = WeightWatch(lstm)
    watch.changed()

    def reorder(t: Tensor) -> Tensor:
        i, j, f, o = t.detach().chunk(4)
        return torch.cat([i, f, o, j])

    bias = reorder(lstm.bias).clone()
    bias[lstm.cell_dim : 2 * lstm.cell_dim] += lstm.forget_bias
    packed = Packed(
        reorder(lstm.input_weight).t().contiguous(),
        reorder(lstm.state_weight).t().contiguous(),
        bias,
        None if lstm.projection is None else lstm.projection.detach().t().contiguous(),
    )
    _packed[lstm] = (watch, packed)
    return packed


def run(
    lstm: ProjectedLSTM, x: Tensor, lengths: Tensor, state: State | None
) -> tuple[Tensor, State]:
    """Arguments and results of :meth:`ProjectedLSTM.forward`, float32 on the CPU."""
    n, time, _ = x.shape
    order = torch.argsort(lengths, descending=True, stable=True)
    sorted_lengths = lengths[order]
    # (T, B): True at the first rows of each step
    running = torch.arange(time)[:, None] < sorted_lengths
    counts = running.sum(1).tolist()
    inputs = x[order].transpose(0, 1)[running]  # (N, input_dim), step by step without padding
    h, c = state if state is not None else lstm.zero_state(n)
    h, c = h[order].clone(), c[order].clone()
    outputs = _steps(lstm, pack(lstm), inputs, counts, h, c)
    padded = x.new_zeros(time, n, lstm.output_dim)
    padded[running] = outputs
    back = torch.empty_like(order)
    back[order] = torch.arange(n)
    return padded.transpose(0, 1)[back], (h[back], c[back])


def _steps(
    lstm: ProjectedLSTM, weights: Packed, inputs: Tensor, counts: list[int], h: Tensor, c: Tensor
) -> Tensor:
    """All steps over the rows still running.

    Args:
        lstm: For its sizes and bounds.
        weights: Its packed weights.
        inputs: (N, input_dim), the rows of step 0, then those of step 1, …
        counts: Rows of each step, never growing.
        h: (B, P), changed to the last output of each row.
        c: (B, H), changed to the last cell of each row.

    Returns:
        Outputs (N, P) in the order of the inputs.
    """
    width, cell_clip = lstm.cell_dim, lstm.cell_clip
    proj_clip = lstm.proj_clip if weights.projection is not None else None
    starts = [0, *accumulate(counts)]
    outputs = inputs.new_empty(len(inputs), lstm.output_dim)
    most = max(counts, default=0)
    gates = inputs.new_empty(max(_ROWS_AHEAD, most), 4 * width)
    cell = inputs.new_empty(most, width)
    for first, last in _pieces(counts, lstm.reverse):
        offset, end = starts[first], starts[last]
        torch.addmm(weights.bias, inputs[offset:end], weights.input, out=gates[: end - offset])
        steps = range(first, last)
        for t in reversed(steps) if lstm.reverse else steps:
            n = counts[t]
            g = gates[starts[t] - offset : starts[t + 1] - offset]
            some_h, some_c, out = h[:n], c[:n], outputs[starts[t] : starts[t + 1]]
            g.addmm_(some_h, weights.state)
            g[:, : 3 * width].sigmoid_()
            i, f, o, j = g.chunk(4, 1)
            some_c.mul_(f).addcmul_(i, j.tanh_())
            if cell_clip is not None:
                some_c.clamp_(-cell_clip, cell_clip)
            y = torch.tanh(some_c, out=cell[:n]).mul_(o)
            if weights.projection is None:
                out.copy_(y)
            else:
                torch.mm(y, weights.projection, out=out)
                if proj_clip is not None:
                    out.clamp_(-proj_clip, proj_clip)
            some_h.copy_(out)
    return outputs


def _pieces(counts: list[int], reverse: bool) -> list[tuple[int, int]]:
    """Steps (first, last) whose input products are made at once, in the order they are needed."""
    pieces, first, rows = [], 0, 0
    for t, n in enumerate(counts):
        if n == 0:
            break
        if t > first and rows + n > _ROWS_AHEAD:
            pieces.append((first, t))
            first, rows = t, 0
        rows += n
    else:
        t = len(counts)
    if counts and rows:
        pieces.append((first, t))
    return pieces[::-1] if reverse else pieces
