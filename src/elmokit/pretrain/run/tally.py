"""Progress of a run, and statistics of its last steps."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import shown

_MOST = 1 << 60  # of any number here


@dataclass
class Progress:
    """Progress of a run."""

    epoch: int = 0
    batch: int = 0
    """Batches done in this epoch."""
    step: int = 0
    """Steps done, including skipped ones."""
    tokens: int = 0
    """Tokens that each direction has predicted."""
    seconds: float = 0.0
    """Training time, not counting evaluations and checkpoints."""
    best: float = math.inf
    """Lowest validation perplexity so far."""
    best_step: int = -1
    """The step of that perplexity; -1 without one."""
    evaluated: int = -1
    """The step of the last evaluation; -1 before the first."""
    evaluated_seconds: float = 0.0
    """The training time at the last evaluation."""
    valid_tokens: int = 0
    """Tokens of the validation text that each evaluation during training uses; 0 before the first.
    It never changes, because only perplexities of the same text can be compared."""
    expected: int = 0
    """Estimated steps of a run with a time limit; 0 while unknown."""

    @classmethod
    def checked(cls, values: dict[str, Any]) -> Progress:
        """Return stored progress; raises ValueError or TypeError if it cannot be true."""
        now = cls(**values)
        for name, default in asdict(cls()).items():
            value, least = getattr(now, name), min(0, default)
            kinds = (int, float) if isinstance(default, float) else (int,)
            if type(value) not in kinds or not (least <= value < _MOST or value == default):
                raise ValueError(f"{name} is {shown(value)}")
        if now.epoch > now.step or now.batch > now.step:
            raise ValueError(f"epoch {now.epoch} and batch {now.batch} at step {now.step}")
        return now


class Pace:
    """Estimates the number of steps of a run with a time limit.

    The first steps of a process do not count, because they compile kernels and fill queues.

    Args:
        progress: The run's progress, which receives the estimate.
        minutes: The time limit; None for a run without one.
    """

    LEFT_OUT, LOOKED_AT = 10, 10

    def __init__(self, progress: Progress, minutes: float | None) -> None:
        self._progress, self._minutes = progress, minutes
        self._steps = 0
        self._since = 0.0

    def step(self) -> None:
        """Count a step."""
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
    """Statistics of the steps since the last report."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._start = replace(progress)
        self._steps: list[tuple[Tensor, Tensor, Tensor]] = []
        self.shares: dict[str, float] = {}
        """Fraction of the time spent in each part of a step."""

    def add(self, loss: Tensor, norm: Tensor, taken: Tensor) -> None:
        """Add a step: its loss (2,), gradient norm, and whether it was taken."""
        self._steps.append((loss, norm, taken))

    def wants_shares(self) -> bool:
        """Whether to measure the parts of the next step: once per report, after a few steps."""
        return not self.shares and len(self._steps) >= 3

    def seconds(self) -> float:
        """Return the training time since the last report."""
        return self._progress.seconds - self._start.seconds

    def values(self) -> dict[str, Any]:
        """Return means over the steps."""
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
