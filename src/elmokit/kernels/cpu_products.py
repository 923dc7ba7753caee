"""The three matrix products of an LSTM step on a CPU, in float32 or with int8 weights.

Rows of inputs end in a 1, which multiplies the bias. Gates come in the order i, f, o, j.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from elmokit.errors import InputError
from elmokit.kernels.fork_lock import ForkLock
from elmokit.kernels.weight_watch import WeightSnapshot

if TYPE_CHECKING:
    from elmokit.kernels.weights import LSTMWeights


class Products(Protocol):
    """The matrix products of an LSTM's steps."""

    def __init__(self, weights: LSTMWeights) -> None: ...

    def of_input(self, x: Tensor, gates: Tensor) -> None:
        """Write the input's share, bias included, of x (N, input_dim + 1) into gates (N, 4H)."""
        ...

    def add_state(self, h: Tensor, gates: Tensor) -> None:
        """Add the share of the state h (N, P) to gates (N, 4H)."""
        ...

    def project(self, y: Tensor, out: Tensor) -> None:
        """Write the projection of y (N, H) into out (N, P)."""
        ...


class Float32Products:
    """Weights stored transposed, which MKL multiplies up to twice as fast for small batches."""

    def __init__(self, weights: LSTMWeights) -> None:
        bias = _with_forget_bias(weights)
        self._input = torch.cat([_reorder(weights.input_weight).t(), bias[None]])
        self._state = _reorder(weights.state_weight).t().contiguous()
        self._projection: Tensor | None = None
        if weights.projection is not None:
            self._projection = weights.projection.detach().t().contiguous()

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
    """Weights rounded to int8 with one scale per row; activations are rounded on the fly."""

    # larger results would make the system clear fresh memory for each product
    _ROWS = 64

    def __init__(self, weights: LSTMWeights) -> None:
        self._input = _quantize(_reorder(weights.input_weight), _with_forget_bias(weights))
        self._state = _quantize(_reorder(weights.state_weight), None)
        self._projection = None
        if weights.projection is not None:
            self._projection = _quantize(weights.projection.detach(), None)

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


PRODUCTS: dict[str, type[Products]] = {"float32": Float32Products, "int8": Int8Products}
"""By the precision of the weights."""


class PackedWeights:
    """The products of one LSTM, built when first needed and again after its weights change."""

    def __init__(self) -> None:
        self._known: tuple[Any, Products] | None = None

    def products(self, weights: LSTMWeights, precision: str) -> Products:
        """The products for these weights in this precision."""
        key = (WeightSnapshot(weights.tensors), weights.forget_bias, precision)
        known = self._known  # read once: another thread may replace it
        if known is not None and known[0] == key:
            return known[1]
        made = PRODUCTS[precision](weights)
        self._known = (key, made)
        return made

    def __reduce__(self) -> tuple[type[PackedWeights], tuple[()]]:
        """Copies and pickles start empty; the products are cheap to rebuild."""
        return PackedWeights, ()


def check_int8() -> None:
    """Raise if PyTorch cannot multiply int8 weights on this processor."""
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise InputError(
            "this build of PyTorch has no int8 products for this processor; leave out quantize="
        )


def _reorder(t: Tensor) -> Tensor:
    i, j, f, o = t.detach().chunk(4)
    return torch.cat([i, f, o, j])


def _with_forget_bias(weights: LSTMWeights) -> Tensor:
    bias = _reorder(weights.bias)
    bias[weights.cell_dim : 2 * weights.cell_dim] += weights.forget_bias
    return bias


_one_at_a_time = ForkLock()


def _quantize(weight: Tensor, bias: Tensor | None) -> Any:
    scales = (weight.abs().amax(1) / 127).clamp_min(1e-12).double()
    zeros = torch.zeros_like(scales, dtype=torch.long)
    with _one_at_a_time:  # both directions pack at once, and the engine is a process-wide setting
        # oneDNN, the other engine, crashes on virtual machines that announce AMX without having it
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():  # PyTorch warns that these functions will move
                warnings.simplefilter("ignore")
                rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
                return torch.ops.quantized.linear_prepack(rounded, bias)
        finally:
            torch.backends.quantized.engine = before


def _multiply(x: Tensor, weight: Any) -> Tensor:
    # reduce_range, because processors without VNNI overflow otherwise
    return torch.ops.quantized.linear_dynamic(x, weight, True)
