"""Cached kernel launches, which skip Triton's lookup at every call."""

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

    At every launch Triton searches for the compiled variant that fits the arguments, which takes
    longer than a step of a small model. Here the variant is cached by what it depends on:
    constants, types, and whether a number exceeds 32 bits. It may also depend on the alignment of
    pointers, which is constant if all sizes (the first constant is one) are multiples of 16.

    Args:
        kernel: A function of ``triton.jit``; its numbers are not specialised.
        grid: The number of programs, in up to three dimensions.
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
