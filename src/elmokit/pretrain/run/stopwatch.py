"""Where the time of a step goes, and how much of it the GPU has work."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor


class Stopwatch:
    """Time by part of a step; a GPU is waited for at every mark, so that few steps have one.

    Args:
        device: Where the step runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seconds: dict[str, float] = {}
        self._wait()  # what steps before have left to be done is none of this one's
        self._last = time.perf_counter()

    def mark(self, part: str) -> None:
        """Everything since the mark before was part of this."""
        self._wait()
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def mark_on_the_way_back(self, value: Tensor, part: str) -> None:
        """The same when the gradient of a value is known."""
        if value.requires_grad:
            value.register_hook(self._hook(part))  # type: ignore[no-untyped-call]

    def _hook(self, part: str) -> Callable[[Tensor], None]:
        def hook(_: Tensor) -> None:
            self.mark(part)

        return hook

    def shares(self) -> dict[str, float]:
        """Share of each part."""
        total = sum(self.seconds.values())
        return {part: round(s / total, 4) for part, s in self.seconds.items()}


def gpu_busy(device: torch.device) -> float | None:
    """The share of the last second or less in which the GPU had work; None where nobody knows.

    What nvidia-smi calls utilisation; PyTorch asks nvidia-ml-py for it.
    """
    if device.type != "cuda":
        return None
    try:
        return torch.cuda.utilization(device) / 100
    except Exception:  # not installed, or the driver does not tell: no reason to stop a run
        return None
