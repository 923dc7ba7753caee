"""Dropout that is about four times as fast as PyTorch's on an AMD CPU.

PyTorch's ``bernoulli_`` is slow there. Uniform numbers compared with the rate have the same
distribution. On Intel's processors, where PyTorch draws with MKL, the two were not compared.
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
    kept = torch.rand_like(x, dtype=torch.float32).ge_(rate).div_(1 - rate)
    return x * kept.to(x.dtype)


class Dropout(nn.Dropout):
    """As :class:`torch.nn.Dropout`, but on a CPU by :func:`drop`, with other random numbers."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop values in training; return them as they are in evaluation."""
        return drop(input, self.p) if self.training else input
