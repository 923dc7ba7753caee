"""The three matrix products of an LSTM step on a CPU, in float32 or with int8 weights.

Rows of inputs end in a 1, which multiplies the bias. Gates come in the order i, f, o, j.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from elmokit.errors import InputError
from elmokit.kernels.fork_lock import ForkLock
from elmokit.kernels.weight_watch import WeightSnapshot

if TYPE_CHECKING:
    from elmokit.kernels.weights import LSTMWeights

# Up to this many rows, float16 is faster than MKL's float32, with MKL's code for AMD and with its
# code for Intel. At 32 rows the latter is as fast.
_FEW_ROWS = 24


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
    """Weights stored transposed, which MKL multiplies up to twice as fast for small batches.

    With few rows, reading the weights takes most of the time. Weights that were stored in eight
    bits are then read as float16; see :class:`_Integers`.
    """

    def __init__(self, weights: LSTMWeights) -> None:
        bias = _with_forget_bias(weights)
        self._input = torch.cat([_reorder(weights.input_weight).t(), bias[None]])
        self._state = _reorder(weights.state_weight).t().contiguous()
        self._projection: Tensor | None = None
        if weights.projection is not None:
            self._projection = weights.projection.detach().t().contiguous()
        self._few_rows = _few_rows(weights)

    def of_input(self, x: Tensor, gates: Tensor) -> None:
        """See :class:`Products`."""
        if self._few_rows is not None and len(x) <= _FEW_ROWS:
            product = self._few_rows.input.product(x[:, :-1])
            torch.addcmul(self._input[-1], *product, out=gates)
        else:
            torch.mm(x, self._input, out=gates)

    def add_state(self, h: Tensor, gates: Tensor) -> None:
        """See :class:`Products`."""
        if self._few_rows is not None and len(h) <= _FEW_ROWS:
            gates.addcmul_(*self._few_rows.state.product(h))
        else:
            gates.addmm_(h, self._state)

    def project(self, y: Tensor, out: Tensor) -> None:
        """See :class:`Products`."""
        if self._projection is None:
            out.copy_(y)
        elif self._few_rows is not None and self._few_rows.projection and len(y) <= _FEW_ROWS:
            torch.mul(*self._few_rows.projection.product(y), out=out)
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


def _gates(t: Tensor) -> list[Tensor]:
    i, j, f, o = t.detach().chunk(4)
    return [i, f, o, j]


def _reorder(t: Tensor) -> Tensor:
    return torch.cat(_gates(t))


def _with_forget_bias(weights: LSTMWeights) -> Tensor:
    bias = _reorder(weights.bias)
    bias[weights.cell_dim : 2 * weights.cell_dim] += weights.forget_bias
    return bias


@dataclass(frozen=True)
class _Integers:
    """A matrix of integers from -127 to 127 with one scale per row.

    The integers are kept in float16, which holds them exactly. Inputs and sums stay in float32, so
    the products are as exact as those of the matrix in float32.
    """

    packed: Any
    scale: Tensor

    def product(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The product with the integers, and the scales to multiply it by."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self.packed), self.scale


@dataclass(frozen=True)
class _FewRows:
    """The weights of an LSTM for products with few rows."""

    input: _Integers
    state: _Integers
    projection: _Integers | None


def _few_rows(weights: LSTMWeights) -> _FewRows | None:
    """Pack weights for few rows; None if they were not stored in eight bits."""
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        return None
    of_input = _as_integers(_gates(weights.input_weight))
    of_state = _as_integers(_gates(weights.state_weight)) if of_input else None
    if of_input is None or of_state is None:
        return None
    if weights.projection is None:
        return _FewRows(of_input, of_state, None)
    projection = _as_integers([weights.projection.detach()])
    return None if projection is None else _FewRows(of_input, of_state, projection)


def _as_integers(parts: Sequence[Tensor]) -> _Integers | None:
    """Recover the integers and scales that a matrix was read from; None if it was not.

    Args:
        parts: Rows of the matrix, in order.
    """
    integers, scales = [], []
    for part in parts:
        for start in range(0, len(part), 64):  # few rows at a time stay in the cache
            rows = part[start : start + 64]
            scale = _row_scales(rows)
            whole = (rows / scale[:, None]).round_()
            error = (whole * scale[:, None]).sub_(rows).abs_().amax(1)
            # the scale is recovered up to the rounding of float32, and multiplied by up to 127
            if not bool((error <= scale * 2**-15).all()):
                return None
            integers.append(whole)
            scales.append(scale)
    with _fbgemm():
        packed = torch.ops.quantized.linear_prepack_fp16(torch.cat(integers), None)
    return _Integers(packed, torch.cat(scales))


_one_at_a_time = ForkLock()


@contextmanager
def _fbgemm() -> Iterator[None]:
    """Make fbgemm the engine that packs weights."""
    with _one_at_a_time:  # both directions pack at once, and the engine is a process-wide setting
        # oneDNN, the other engine, crashes on virtual machines that announce AMX without having it
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            yield
        finally:
            torch.backends.quantized.engine = before


def _quantize(weight: Tensor, bias: Tensor | None) -> Any:
    scales = _row_scales(weight).double()
    zeros = torch.zeros_like(scales, dtype=torch.long)
    with _fbgemm(), warnings.catch_warnings():  # PyTorch warns that these functions will move
        warnings.simplefilter("ignore")
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(rounded, bias)


def _row_scales(weight: Tensor) -> Tensor:
    return (weight.abs().amax(1) / 127).clamp_min(1e-12)


def _multiply(x: Tensor, weight: Any) -> Tensor:
    # reduce_range, because processors without VNNI overflow otherwise
    return torch.ops.quantized.linear_dynamic(x, weight, True)
