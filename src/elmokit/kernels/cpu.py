"""The LSTM on a CPU, without gradients.

Sentences are sorted by length, so that at every step those still running are the first rows, and
no padding is computed. The input's share of the gates is one product for many steps. All steps work
in the same buffers, with the three sigmoid gates side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from elmokit.kernels.cpu_products import PRODUCTS, Products
from elmokit.kernels.weight_watch import WeightSnapshot
from elmokit.nn.lstm import ProjectedLSTM, State

_ROWS_AHEAD = 512  # rows of the input product at once: enough for its full speed, and no more


_Key = tuple[WeightSnapshot, float, str]
_packed: WeakKeyDictionary[ProjectedLSTM, tuple[_Key, Products]] = WeakKeyDictionary()


def pack(lstm: ProjectedLSTM) -> Products:
    """The three products of an LSTM, packed anew only when its weights have changed."""
    key = (WeightSnapshot(lstm), lstm.forget_bias, lstm.precision)
    known = _packed.get(lstm)
    if known is not None and known[0] == key:
        return known[1]
    packed = PRODUCTS[lstm.precision](lstm)
    _packed[lstm] = (key, packed)
    return packed


def run_stack(
    stack: Sequence[ProjectedLSTM],
    tokens: Tensor,
    lengths: Tensor,
    starts: Sequence[State] | None,
    skip: bool,
    outputs: Sequence[Tensor],
) -> list[State]:
    """Run the LSTMs of one direction, float32 on the CPU.

    Args:
        stack: Each reads the output of the one before.
        tokens: Input (B, T, P) of the first.
        lengths: Tokens (B,) of each sentence.
        starts: The state each starts from; None for zeros.
        skip: Whether all but the first add their input to their output.
        outputs: Where the output (B, T, P) of each goes, zero behind each sentence's end.

    Returns:
        The state each ends with.
    """
    n, time, _ = tokens.shape
    order = torch.argsort(lengths, descending=True, stable=True)
    # (T, B) in that order: True at the first rows of each step
    running = torch.arange(time, device=lengths.device)[:, None] < lengths[order]
    counts = running.sum(1).tolist()
    at_step, at_row = running.nonzero(as_tuple=True)
    where = (order[at_row], at_step)  # of every token: its sentence and its place there
    # (N, P), step by step without padding; so it stays through all layers
    x = _rows_with_one(len(at_step), tokens.shape[2], tokens)
    x[:, :-1] = tokens[where]
    finals = []
    for number, lstm in enumerate(stack):
        h, c = lstm.zero_state(n) if starts is None else starts[number]
        h, c = h[order], c[order]
        out = _steps(lstm, pack(lstm), x, counts, h, c)
        if skip and number > 0:
            out[:, :-1] += x[:, :-1]
        outputs[number].zero_().index_put_(where, out[:, :-1])
        finals.append((_unsorted(h, order), _unsorted(c, order)))
        x = out
    return finals


def _rows_with_one(n: int, width: int, like: Tensor) -> Tensor:
    """Room for (n, width) numbers and a 1 at the end of each row, which multiplies the bias.

    That adds the bias within the product; added by itself, it costs a tenth of the product.
    """
    rows = like.new_empty(n, width + 1)
    rows[:, -1] = 1
    return rows


def _unsorted(rows: Tensor, order: Tensor) -> Tensor:
    return torch.empty_like(rows).index_copy_(0, order, rows)


def _steps(
    lstm: ProjectedLSTM,
    products: Products,
    inputs: Tensor,
    counts: list[int],
    h: Tensor,
    c: Tensor,
) -> Tensor:
    """All steps over the rows still running.

    Args:
        lstm: For its sizes and bounds.
        products: Its packed weights.
        inputs: (N, input_dim + 1), the rows of step 0, then those of step 1, …, each with a 1.
        counts: Rows of each step, never growing.
        h: (B, P), changed to the last output of each row.
        c: (B, H), changed to the last cell of each row.

    Returns:
        Outputs (N, P + 1) in the order of the inputs, each with a 1.
    """
    width, cell_clip = lstm.cell_dim, lstm.cell_clip
    proj_clip = lstm.proj_clip if lstm.projection is not None else None
    starts = [0, *accumulate(counts)]
    outputs = _rows_with_one(len(inputs), lstm.output_dim, inputs)
    most = max(counts, default=0)
    gates = inputs.new_empty(max(_ROWS_AHEAD, most), 4 * width)
    cell = inputs.new_empty(most, width)
    running = -1
    for first, last in _pieces(counts, lstm.reverse):
        offset, end, sizes = starts[first], starts[last], counts[first:last]
        ahead = gates[: end - offset]
        products.of_input(inputs[offset:end], ahead)
        # all views of all steps at once: made one by one, they take a sixth of the time of a
        # sentence alone
        views = [ahead, ahead[:, : 3 * width], *ahead.chunk(4, 1), outputs[offset:end, :-1]]
        steps = list(zip(sizes, *(view.split_with_sizes(sizes) for view in views), strict=True))
        for n, g, sigmoids, i, f, o, j, out in reversed(steps) if lstm.reverse else steps:
            if n != running:
                running, some_h, some_c, some_cell = n, h[:n], c[:n], cell[:n]
            products.add_state(some_h, g)
            sigmoids.sigmoid_()
            some_c.mul_(f).addcmul_(i, j.tanh_())
            if cell_clip is not None:
                some_c.clamp_(-cell_clip, cell_clip)
            products.project(torch.tanh(some_c, out=some_cell).mul_(o), out)
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
