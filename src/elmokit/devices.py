"""Choosing the device to compute on, and moving tensors to it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from elmokit.errors import InputError, OutOfMemoryError, shortened, shown

_ALWAYS_FITS = 1 << 30  # not checked, because every check reads a file
_CGROUP = "/sys/fs/cgroup"
_CONTAINERS = (  # versions 2 and 1: the limit, the counts, and the count of memory in use
    (f"{_CGROUP}/memory.max", f"{_CGROUP}/memory.stat", "anon"),
    (f"{_CGROUP}/memory/memory.limit_in_bytes", f"{_CGROUP}/memory/memory.stat", "total_rss"),
)


def choose_device(device: str | torch.device | None) -> torch.device:
    """Return a device after checking that it works.

    Args:
        device: For instance ``"cpu"`` or ``"cuda:1"``; None uses a GPU if available.
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=device).item()  # fails on the meta device, which computes nothing
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        if not reason.startswith(("Torch", "CUDA")):  # else it names tensors and operators
            reason = "PyTorch has no such device here; use cpu, cuda or cuda:N"
        label = str(device) if isinstance(device, torch.device) else device
        raise InputError(f"cannot use the device {shown(label)}: {shortened(reason)}") from error
    chosen = torch.device(device)
    return torch.device("cpu") if chosen.type == "cpu" else chosen  # there is no second CPU


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to a device. The copy to a GPU is asynchronous."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def check_memory(n_bytes: int, device: torch.device, what: str, remedy: str) -> None:
    """Raise before a large computation on a CPU that would not fit in memory.

    Linux grants more memory than there is, and kills the process that uses it.

    Args:
        n_bytes: What the computation needs.
        device: Where it runs. A GPU refuses memory it does not have, so it needs no check.
        what: What does not fit, in the plural.
        remedy: What to do instead.
    """
    if device.type != "cpu" or n_bytes < _ALWAYS_FITS:
        return
    available = available_bytes(device)
    if available is not None and n_bytes > available:
        raise OutOfMemoryError(
            f"{what} need {n_bytes / 1e9:,.1f} GB of memory, and {available / 1e9:,.1f} GB are "
            f"available; {remedy}"
        )


def available_bytes(device: torch.device) -> int | None:
    """Memory that new data can take, within the limit of a container; None if unknown."""
    if device.type == "cuda":  # PyTorch keeps freed memory, and uses it again
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        found = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux
        return None
    for limit_file, use_file, used in _CONTAINERS:
        try:
            counts = dict(line.split() for line in Path(use_file).read_text().splitlines())
            found = min(found, int(Path(limit_file).read_text()) - int(counts[used]))
        except (OSError, KeyError, ValueError):  # no container, or one without a limit
            continue
    return found


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error) or "out of memory" in str(error)
    )
