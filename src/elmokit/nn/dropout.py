"""Dropout that is several times faster than PyTorch's on a CPU.

PyTorch draws from a Bernoulli distribution element by element. Uniform numbers come from a
vectorised generator, and a comparison turns them into the same distribution.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def drop(x: Tensor, rate: float) -> Tensor:
    """Set each value to zero with a probability, and scale the others so that the mean stays.

    Args:
        x: Values of any shape.
        rate: The probability, from 0 to 1; 0 returns the values as they are.
    """
    if not rate:
        return x
    if x.device.type != "cpu" or rate == 1:
        return F.dropout(x, rate)
    # in float32, because fewer bits would round the probability
    kept = torch.rand(x.shape).ge_(rate).div_(1 - rate)
    return x * kept.to(x.dtype)


class Dropout(nn.Dropout):
    """As :class:`torch.nn.Dropout`, but faster on a CPU, where it draws other random numbers."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop values in training; return them as they are in evaluation."""
        return drop(input, self.p) if self.training else input
