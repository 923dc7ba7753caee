"""Where a run stands, and what its last steps were like."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass
class Progress:
    """Where a run stands."""

    epoch: int = 0
    batch: int = 0
    """Batches of the epoch done."""
    step: int = 0
    """Steps done, skipped ones included."""
    tokens: int = 0
    """Tokens each direction has predicted."""
    seconds: float = 0.0
    """Spent training, evaluations and checkpoints not counted."""
    best: float = math.inf
    """Lowest perplexity on the validation text so far."""
    expected: int = 0
    """Steps of the whole run, guessed from its pace, where time ends it; 0 while nobody knows."""


class Pace:
    """How many steps there will be where time ends the run.

    The first steps of a process are left out, as they compile kernels and fill queues.

    Args:
        progress: Where the run stands, and where the guess goes.
        minutes: How long it is; None where steps end it.
    """

    LEFT_OUT, LOOKED_AT = 10, 10

    def __init__(self, progress: Progress, minutes: float | None) -> None:
        self._progress, self._minutes = progress, minutes
        self._steps = 0
        self._since = 0.0

    def step(self) -> None:
        """A step is done."""
        now = self._progress
        if self._minutes is None or now.expected:
            return
        self._steps += 1
        if self._steps == self.LEFT_OUT:
            self._since = now.seconds
        elif self._steps == self.LEFT_OUT + self.LOOKED_AT:
            each = max(1e-9, now.seconds - self._since) / self.LOOKED_AT
            now.expected = now.step + max(0, round((60 * self._minutes - now.seconds) / each))


class Since:
    """What happened since the last report."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._start = replace(progress)
        self._steps: list[tuple[Tensor, Tensor, Tensor]] = []
        self.shares: dict[str, float] = {}
        """Of each part of a step, its share of the time."""

    def add(self, loss: Tensor, norm: Tensor, taken: Tensor) -> None:
        """Count a step: loss (2,), norm of the gradient, whether it was taken."""
        self._steps.append((loss, norm, taken))

    def wants_shares(self) -> bool:
        """Whether the next step is to be looked at: one in every report, when it runs smoothly."""
        return not self.shares and len(self._steps) >= 3

    def seconds(self) -> float:
        """Time spent training."""
        return self._progress.seconds - self._start.seconds

    def values(self) -> dict[str, Any]:
        """Means over the steps."""
        tokens = self._progress.tokens - self._start.tokens
        losses, norms, taken = (torch.stack(s) for s in zip(*self._steps, strict=True))
        values: dict[str, Any] = {
            "seconds": self._progress.seconds,
            "tokens": self._progress.tokens,
            "tokens_per_second": tokens / max(1e-9, self.seconds()),
            "skipped": int((~taken).sum()),
        }
        if self.shares:
            values["time"] = self.shares
        if taken.any():
            loss = losses[taken].mean(0).tolist()
            values |= {"loss": sum(loss) / len(loss), "loss_forward": loss[0]}
            if len(loss) > 1:
                values["loss_backward"] = loss[1]
            values["gradient_norm"] = float(norms[taken].mean())
        return values
