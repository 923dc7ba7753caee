"""Where to compute, and getting numbers there."""

from __future__ import annotations

import torch
from torch import Tensor

from elmokit.errors import InputError


def choose_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, once it is known to work; a GPU where there is one by default."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"cannot use the device {str(device)!r}: {reason}") from error
    return torch.device(device)


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """A copy of numbers on the CPU, which a GPU takes when it comes to it; nobody waits."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error) or "out of memory" in str(error)
    )
