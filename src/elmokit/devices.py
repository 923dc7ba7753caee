"""Choosing the device to compute on, and moving tensors to it."""

from __future__ import annotations

import torch
from torch import Tensor

from elmokit.errors import InputError


def choose_device(device: str | torch.device | None) -> torch.device:
    """Return a device after checking that it works.

    Args:
        device: For instance ``"cpu"`` or ``"cuda:1"``; None uses a GPU if available.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        if reason.startswith("Expected one of"):  # a list of two dozen types
            reason = "unknown type; use cpu, cuda or cuda:N"
        raise InputError(f"cannot use the device {str(device)!r}: {reason}") from error
    return torch.device(device)


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to a device. The copy to a GPU is asynchronous."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error) or "out of memory" in str(error)
    )
