"""The three matrix products of an LSTM on a CPU, in float32 or with int8 weights.

Rows of inputs end in a 1, which multiplies the bias. Gates come in the order i, f, o, j.
"""

from __future__ import annotations

import warnings
from threading import Lock
from typing import Any, Protocol

import torch
from torch import Tensor

from elmokit.errors import InputError
from elmokit.nn.lstm import ProjectedLSTM


class Products(Protocol):
    """What the steps of an LSTM multiply."""

    def __init__(self, lstm: ProjectedLSTM) -> None: ...

    def of_input(self, x: Tensor, gates: Tensor) -> None:
        """Put the input's share, bias included, of x (N, input_dim + 1) into gates (N, 4H)."""
        ...

    def add_state(self, h: Tensor, gates: Tensor) -> None:
        """Add the share of the state h (N, P) to gates (N, 4H)."""
        ...

    def project(self, y: Tensor, out: Tensor) -> None:
        """Put the projection of y (N, H) into out (N, P)."""
        ...


class Float32Products:
    """Weights kept transposed, which MKL multiplies up to twice as fast at small batches."""

    def __init__(self, lstm: ProjectedLSTM) -> None:
        bias = _with_forget_bias(lstm)
        self._input = torch.cat([_reorder(lstm.input_weight).t(), bias[None]])
        self._state = _reorder(lstm.state_weight).t().contiguous()
        self._projection = None if lstm.projection is None else lstm.projection.detach().t()
        if self._projection is not None:
            self._projection = self._projection.contiguous()

    def of_input(self, x: Tensor, gates: Tensor) -> None:
        """See :class:`Products`."""
        torch.mm(x, self._input, out=gates)

    def add_state(self, h: Tensor, gates: Tensor) -> None:
        """See :class:`Products`."""
        gates.addmm_(h, self._state)

    def project(self, y: Tensor, out: Tensor) -> None:
        """See :class:`Products`."""
        if self._projection is None:
            out.copy_(y)
        else:
            torch.mm(y, self._projection, out=out)


class Int8Products:
    """Weights rounded to int8, one scale a row; what they multiply is rounded as it comes."""

    # more rows at once would mean results so large that the system clears fresh memory for each
    _ROWS = 64

    def __init__(self, lstm: ProjectedLSTM) -> None:
        self._input = _quantize(_reorder(lstm.input_weight), _with_forget_bias(lstm))
        self._state = _quantize(_reorder(lstm.state_weight), None)
        self._projection = (
            None if lstm.projection is None else _quantize(lstm.projection.detach(), None)
        )

    def of_input(self, x: Tensor, gates: Tensor) -> None:
        """See :class:`Products`."""
        for start in range(0, len(x), self._ROWS):
            rows = slice(start, start + self._ROWS)
            gates[rows] = _multiply(x[rows, :-1], self._input)

    def add_state(self, h: Tensor, gates: Tensor) -> None:
        """See :class:`Products`."""
        for start in range(0, len(h), self._ROWS):
            rows = slice(start, start + self._ROWS)
            gates[rows] += _multiply(h[rows], self._state)

    def project(self, y: Tensor, out: Tensor) -> None:
        """See :class:`Products`."""
        out.copy_(y if self._projection is None else _multiply(y, self._projection))


_one_at_a_time = Lock()

PRODUCTS: dict[str, type[Products]] = {"float32": Float32Products, "int8": Int8Products}


def check_int8() -> None:
    """Raise where PyTorch cannot multiply with int8 weights."""
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise InputError(
            "this build of PyTorch has no int8 products for this processor; leave out quantize="
        )


def _reorder(t: Tensor) -> Tensor:
    i, j, f, o = t.detach().chunk(4)
    return torch.cat([i, f, o, j])


def _with_forget_bias(lstm: ProjectedLSTM) -> Tensor:
    bias = _reorder(lstm.bias)
    bias[lstm.cell_dim : 2 * lstm.cell_dim] += lstm.forget_bias
    return bias


def _quantize(weight: Tensor, bias: Tensor | None) -> Any:
    scales = (weight.abs().amax(1) / 127).clamp_min(1e-12).double()
    zeros = torch.zeros_like(scales, dtype=torch.long)
    with _one_at_a_time:  # both directions pack at once, and these settings are the process's
        # oneDNN, the other engine, crashes on virtual machines that announce AMX without having it
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():  # that these functions will move to another package
                warnings.simplefilter("ignore")
                rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
                return torch.ops.quantized.linear_prepack(rounded, bias)
        finally:
            torch.backends.quantized.engine = before


def _multiply(x: Tensor, weight: Any) -> Tensor:
    # reduce_range, as processors without VNNI overflow otherwise
    return torch.ops.quantized.linear_dynamic(x, weight, True)
