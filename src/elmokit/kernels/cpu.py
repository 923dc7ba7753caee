"""The LSTMs of one direction on a CPU, in float32 or int8, without gradients.

Sentences are sorted by length (see ragged.py): at every step the sentences still running are the
first rows, and no padding is computed. The input's share of the gates is one product for many
steps. All steps reuse the same buffers, with the three sigmoid gates side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from elmokit.kernels.cpu_products import Products
from elmokit.kernels.weights import LSTMWeights

_ROWS_AHEAD = 512  # rows of one input product: enough for full speed, and no more memory


def run_stack(
    stack: Sequence[LSTMWeights],
    rows: Tensor,
    counts: Sequence[int],
    starts: Sequence[tuple[Tensor, Tensor]],
    skip: bool,
    precision: str = "float32",
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Run the LSTMs of one direction over packed rows.

    Args:
        stack: Each LSTM reads the output of the one before.
        rows: Inputs (N, P) of the first: all rows of step 0, then of step 1, and so on.
        counts: Rows of each step, never growing.
        starts: The state h (B, P) and c (B, H) each LSTM starts from, in the order of the rows of
            step 0; sentences without tokens come last.
        skip: Whether every LSTM but the first adds its input to its output.
        precision: float32 or int8.

    Returns:
        For each LSTM its outputs (N, P) and the final states h (B, P) and c (B, H).
    """
    x = _rows_with_one(len(rows), rows.shape[1], rows)
    x[:, :-1] = rows
    found = []
    for number, (weights, (h, c)) in enumerate(zip(stack, starts, strict=True)):
        h, c = h.clone(), c.clone()
        out = _steps(weights, weights.packed.products(weights, precision), x, counts, h, c)
        if skip and number > 0:
            out[:, :-1] += x[:, :-1]
        found.append((out[:, :-1], h, c))
        x = out
    return found


def _rows_with_one(n: int, width: int, like: Tensor) -> Tensor:
    """Uninitialised rows (n, width) with a 1 at the end of each, which multiplies the bias.

    Adding the bias inside the product is free; adding it separately costs a tenth of the product.
    """
    rows = like.new_empty(n, width + 1)
    rows[:, -1] = 1
    return rows


def _steps(
    weights: LSTMWeights,
    products: Products,
    inputs: Tensor,
    counts: Sequence[int],
    h: Tensor,
    c: Tensor,
) -> Tensor:
    """All steps of one LSTM.

    Args:
        weights: For sizes and clipping bounds.
        products: The packed weights.
        inputs: (N, input_dim + 1), each row ending in 1.
        counts: Rows of each step, never growing.
        h: (B, P); becomes the last output of each row.
        c: (B, H); becomes the last cell of each row.

    Returns:
        Outputs (N, P + 1) in the order of the inputs, each row ending in 1.
    """
    width, cell_clip = weights.cell_dim, weights.cell_clip
    proj_clip = weights.proj_clip if weights.projection is not None else None
    starts = [0, *accumulate(counts)]
    outputs = _rows_with_one(len(inputs), weights.output_dim, inputs)
    most = max(counts, default=0)
    gates = inputs.new_empty(max(_ROWS_AHEAD, most), 4 * width)
    cell = inputs.new_empty(most, width)
    running = -1
    for first, last in _pieces(counts):
        offset, end, sizes = starts[first], starts[last], list(counts[first:last])
        ahead = gates[: end - offset]
        products.of_input(inputs[offset:end], ahead)
        # all views of all steps at once: one by one they take a sixth of the time of a sentence
        views = [ahead, ahead[:, : 3 * width], *ahead.chunk(4, 1), outputs[offset:end, :-1]]
        steps = zip(sizes, *(view.split_with_sizes(sizes) for view in views), strict=True)
        for n, g, sigmoids, i, f, o, j, out in steps:
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


def _pieces(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of steps (first, last) whose input products are computed together."""
    pieces, first, rows = [], 0, 0
    for t, n in enumerate(counts):
        if t > first and rows + n > _ROWS_AHEAD:
            pieces.append((first, t))
            first, rows = t, 0
        rows += n
    if rows:
        pieces.append((first, len(counts)))
    return pieces
