"""Launching Triton's kernels with little overhead."""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from torch import Tensor

_INT32 = 2**31 - 1
_ALIGNED = 16

_compiled: dict[Any, Any] = {}


def launch(
    kernel: Any,
    grid: tuple[int, ...],
    tensors: tuple[Tensor, ...],
    numbers: tuple[float, ...],
    constants: tuple[Any, ...],
) -> None:
    """Run a kernel whose arguments are tensors, then numbers, then constants.

    Triton finds out anew at every launch which of its compiled forms fits the arguments, which
    takes longer than a step of a small model. Here the form is looked up by what it depends on:
    constants, types, and whether numbers are long; what it may also depend on, the alignment of
    pointers, is the same where all sizes, of which the first constant is one, are multiples of 16.

    Args:
        kernel: A function of ``triton.jit``; its numbers are not specialised.
        grid: How many programs, in up to three dimensions.
        tensors: On the current device.
        numbers: Integers and floats.
        constants: Values of ``tl.constexpr`` arguments.
    """
    arguments = (*tensors, *numbers, *constants)
    if constants[0] % _ALIGNED or not hasattr(kernel, "device_caches"):
        kernel[grid](*arguments)
        return
    types = tuple(t.dtype for t in tensors)
    key = (kernel, constants, types, tensors[0].device.index, max(numbers) > _INT32)
    ready = _compiled.get(key)
    if ready is None:
        _compiled[key] = kernel[grid](*arguments)
    else:
        ready[(*grid, 1, 1)[:3]](*arguments)
