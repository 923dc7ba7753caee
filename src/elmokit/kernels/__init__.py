"""Faster ways to run nn/lstm.py, each equal to it within rounding, behind one choice."""

from __future__ import annotations

import torch
from torch import Tensor

from elmokit.kernels import cpu
from elmokit.nn.lstm import ProjectedLSTM, State


def run_lstm(
    lstm: ProjectedLSTM, x: Tensor, lengths: Tensor, state: State | None
) -> tuple[Tensor, State]:
    """Run an LSTM by the fastest way that gives its result; arguments as for the LSTM itself."""
    if _is_plain_float32(lstm, x) and x.device.type == "cpu":
        return cpu.run(lstm, x, lengths, state)
    result: tuple[Tensor, State] = lstm(x, lengths, state)
    return result


def _is_plain_float32(lstm: ProjectedLSTM, x: Tensor) -> bool:
    """Whether numbers are all that is wanted: float32, no gradients, no autocast."""
    if torch.is_grad_enabled() and (
        x.requires_grad or any(p.requires_grad for p in lstm.parameters())
    ):
        return False
    kinds = {x.dtype, lstm.bias.dtype}
    return kinds == {torch.float32} and not torch.is_autocast_enabled(x.device.type)
