"""Muon (Jordan et al., 2024): matrices follow their momentum, all its directions made as strong.

A gradient of a matrix is strong in few directions, which many steps repeat; the others, in which
rarer things are learned, hardly move. Here the momentum's singular values are all brought to about
one before the step. PyTorch has a Muon of its own from version 2.9 on, which rounds to bfloat16 on
a CPU too, and cannot leave out a step without waiting for the GPU.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_POLYNOMIAL = (3.4445, -4.7750, 2.0315)  # of x, x³ and x⁵; steepest at 0, and near 1 from there on
_ROUNDS = 5
_SIZE = 0.2  # of a change, as root mean square: about what AdamW's are at the same rate


class Muon(torch.optim.Optimizer):
    """Changes of matrices with singular values of about one.

    A step changes nothing where ``found_inf``, as fused optimizers of PyTorch have it, is 1.

    Args:
        matrices: What to change.
        learning_rate: As for AdamW.
        momentum: Share of the momentum that is kept at each step.
        weight_decay: Pull towards zero.
    """

    found_inf: Tensor | None = None

    def __init__(
        self,
        matrices: Iterable[Tensor],
        learning_rate: float,
        momentum: float,
        weight_decay: float,
    ) -> None:
        defaults = {"lr": learning_rate, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(matrices, defaults)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Follow the gradients of all matrices that have one."""
        for group in self.param_groups:
            alike = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for matrices in alike.values():
                self._change(matrices, group)

    def _change(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """One step of matrices (R, C) of the same shape."""
        taken = 1.0 if self.found_inf is None else 1.0 - self.found_inf
        ahead = []
        for matrix in matrices:
            known = self.state[matrix]
            if not known:
                known["momentum"] = torch.zeros_like(matrix)
            momentum, gradient = known["momentum"], matrix.grad
            assert gradient is not None
            if self.found_inf is not None:  # not by multiplication, as it may not be finite
                gradient = torch.where(self.found_inf.bool(), momentum, gradient)
            momentum.lerp_(gradient, 1 - group["momentum"])
            ahead.append(gradient.lerp(momentum, group["momentum"]))  # Nesterov's: one step on
        rate = group["lr"] * taken
        for matrix, change in zip(matrices, orthogonal(torch.stack(ahead)), strict=True):
            matrix.mul_(1 - rate * group["weight_decay"])
            matrix.sub_(change * (rate * _SIZE * math.sqrt(max(matrix.shape))))


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices (N, R, C) with the same singular vectors, and singular values of about one.

    By products alone, as Newton and Schulz found, in bfloat16 on a GPU: values above 1/650 of a
    matrix's norm become about 0.68 to 1.21, lower ones come out smaller, and zeros stay zeros.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    if x.is_cuda:
        x = x.bfloat16()
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp_min(1e-12)
    a, b, c = _POLYNOMIAL
    for _ in range(_ROUNDS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    x = x.to(matrices.dtype)
    return x.mT if tall else x
