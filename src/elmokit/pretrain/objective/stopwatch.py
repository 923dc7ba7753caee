"""Where the time of a training step goes, and how busy the GPU is."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor


class Stopwatch:
    """Measures the parts of a step. Every mark waits for the GPU, so only few steps are measured.

    Args:
        device: Where the step runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seconds: dict[str, float] = {}
        self._wait()  # for work that earlier steps have queued
        self._last = time.perf_counter()

    def mark(self, part: str) -> None:
        """Count the time since the last mark as this part."""
        self._wait()
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def mark_on_the_way_back(self, value: Tensor, part: str) -> None:
        """Set this mark in the backward pass, when the gradient of a value is known."""
        if value.requires_grad:
            value.register_hook(self._hook(part))  # type: ignore[no-untyped-call]

    def _hook(self, part: str) -> Callable[[Tensor], None]:
        def hook(_: Tensor) -> None:
            self.mark(part)

        return hook

    def shares(self) -> dict[str, float]:
        """Return the fraction of the time spent in each part."""
        total = sum(self.seconds.values())
        return {part: round(s / total, 4) for part, s in self.seconds.items()}


def gpu_busy(device: torch.device) -> float | None:
    """Return the GPU's utilisation, 0 to 1, as nvidia-smi reports it; None if unknown.

    PyTorch asks nvidia-ml-py for it.
    """
    if device.type != "cuda":
        return None
    try:
        return torch.cuda.utilization(device) / 100
    except Exception:  # nvidia-ml-py or the driver does not provide it; training can go on
        return None
