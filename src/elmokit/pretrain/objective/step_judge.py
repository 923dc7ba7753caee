"""Decides which training steps are taken, and when training has failed.

Everything stays on the device, because waiting for a GPU at every step would slow training down.
Only :meth:`StepJudge.check`, :attr:`StepJudge.skipping` and :meth:`StepJudge.state` wait for it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elmokit.errors import TrainingError

_MOST_SKIPPED = 10  # skipped steps in a row before training gives up
_EXPLODED = 3.0  # times the loss of guessing
_JUMP = 100  # times the usual gradient norm; clipping does not help, as Muon ignores the scale
_NEW = 0.02  # weight of a step in the usual gradient norm


class StepJudge:
    """Judges each step by its loss and by the norm of its gradient.

    Args:
        vocabulary_size: Determines the loss of guessing.
        rate: The peak learning rate. What was judged with another rate does not count.
        loss_scale: Factor on the loss, and so on the gradient.
        device: Where losses and gradients are.
    """

    def __init__(
        self, vocabulary_size: int, rate: float, loss_scale: float, device: torch.device
    ) -> None:
        self._guess = math.log(vocabulary_size)
        self._rate, self._loss_scale = rate, loss_scale
        self._skipped = self._most_skipped = torch.zeros((), dtype=torch.long, device=device)
        self._usual = torch.zeros((), device=device)  # gradient norm; 0 before the first step

    def judge(self, loss: Tensor, norm: Tensor) -> Tensor:
        """Return whether to take a step, as a tensor.

        Args:
            loss: Mean loss per token of each direction (2,).
            norm: Norm of the gradient before clipping.
        """
        usable = torch.isfinite(norm) & (loss.mean() < _EXPLODED * self._guess)
        size = norm / self._loss_scale
        usable &= (self._usual == 0) | (size < _JUMP * self._usual)
        # the usual norm rises slowly; otherwise it would follow gradients that keep growing
        usual = self._usual.lerp(torch.minimum(size, 2 * self._usual), _NEW)
        usual = torch.where(self._usual == 0, size, usual)
        self._usual = torch.where(usable, usual, self._usual)
        self._skipped = torch.where(usable, 0, self._skipped + 1)
        self._most_skipped = torch.maximum(self._most_skipped, self._skipped)
        return usable

    @property
    def skipping(self) -> bool:
        """Whether the last step was skipped."""
        return bool(self._skipped)

    def check(self, step: int) -> None:
        """Raise if too many steps in a row were skipped, up to this step."""
        n = int(self._most_skipped)
        if n >= _MOST_SKIPPED:
            raise TrainingError(
                f"training failed: {n} steps in a row were skipped, up to step {step}, because "
                "the loss or gradient was not finite, the loss was far above that of guessing, or "
                f"the gradient was {_JUMP} times as large as usual; {advice(self._rate, True)}"
            )

    def state(self) -> dict[str, float]:
        """Return what a checkpoint keeps."""
        return {"skipped": int(self._skipped), "usual": float(self._usual), "rate": self._rate}

    def load_state(self, state: dict[str, float]) -> None:
        """Restore :meth:`state`; with another learning rate, judging starts over."""
        if state["rate"] == self._rate:
            self._skipped = self._skipped + int(state["skipped"])
            self._usual = self._usual + state["usual"]


def advice(rate: float, saved: bool) -> str:
    """Say what to do after training has failed.

    Args:
        rate: The learning rate.
        saved: Whether there is a checkpoint to continue from.
    """
    how = "pass resume=True to continue from the last good checkpoint"
    lower = rate / 4 if rate < 1 else 0.001
    return (
        f"{how if saved else 'start the run again'} with a lower learning rate, such as "
        f"optimizer.learning_rate={lower:.2g}"
    )
