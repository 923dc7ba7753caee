"""Muon (Jordan et al., 2024): momentum whose update has equal strength in all directions.

The gradient of a matrix is strong in few directions, which repeat over many steps. The other
directions, in which rarer things are learned, hardly move. Muon therefore sets all singular values
of the momentum to about one before each step.

PyTorch has its own Muon since version 2.9. It rounds to bfloat16 on a CPU too, and it cannot skip a
step without waiting for the GPU, so this one is used instead.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_POLYNOMIAL = (3.4445, -4.7750, 2.0315)  # of x, x³ and x⁵: steep at 0, then close to 1
_ROUNDS = 5
_SIZE = 0.2  # root mean square of an update, about that of AdamW at the same rate


class Muon(torch.optim.Optimizer):
    """Optimizer whose updates of a matrix have singular values of about one.

    A step changes nothing if ``found_inf`` is 1, as for the fused optimizers of PyTorch.

    Args:
        matrices: The parameters.
        learning_rate: As for AdamW.
        momentum: Fraction of the momentum kept at each step.
        weight_decay: As for AdamW.
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
        """Update all matrices that have a gradient."""
        for group in self.param_groups:
            alike = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for matrices in alike.values():
                self._change(matrices, group)

    def _change(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """Update matrices (R, C) of the same shape."""
        taken = 1.0 if self.found_inf is None else 1.0 - self.found_inf
        ahead = []
        for matrix in matrices:
            known = self.state[matrix]
            if not known:
                known["momentum"] = torch.zeros_like(matrix)
            momentum, gradient = known["momentum"], matrix.grad
            assert gradient is not None
            if self.found_inf is not None:  # not by multiplication: it may not be finite
                gradient = torch.where(self.found_inf.bool(), momentum, gradient)
            momentum.lerp_(gradient, 1 - group["momentum"])
            ahead.append(gradient.lerp(momentum, group["momentum"]))  # Nesterov momentum
        rate = group["lr"] * taken
        for matrix, change in zip(matrices, orthogonal(torch.stack(ahead)), strict=True):
            matrix.mul_(1 - rate * group["weight_decay"])
            matrix.sub_(change * (rate * _SIZE * math.sqrt(max(matrix.shape))))


def orthogonal(matrices: Tensor) -> Tensor:
    """Return matrices (N, R, C) with the same singular vectors and singular values of about one.

    This is a Newton-Schulz iteration, in bfloat16 on a GPU. Singular values above 1/650 of a
    matrix's norm become 0.68 to 1.21, lower ones come out smaller, and zeros stay zero.
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
