"""Noticing that weights are not what they were when something was computed from them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_SAMPLES = 16  # values looked at in each tensor


class WeightWatch:
    """Remembers a module's weights by where they are and by a sample of their values.

    PyTorch's own version counters do not see fused optimizers, nor changes through ``.data``. Any
    training step changes nearly all values, so that a few of each tensor tell.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._places: list[int] = []
        self._sample: Tensor | None = None

    @torch.no_grad()
    def changed(self) -> bool:
        """Whether the weights differ from those at the call before; true at the first call."""
        weights = list(self._module.parameters())
        places = [p.data_ptr() for p in weights]
        sample = torch.cat([_some(p) for p in weights])
        same = (
            self._sample is not None
            and places == self._places
            and sample.dtype == self._sample.dtype
            and torch.equal(sample, self._sample)
        )
        self._places, self._sample = places, sample
        return not same


def _some(weight: Tensor) -> Tensor:
    flat = weight.reshape(-1)
    return flat[:: max(1, len(flat) // _SAMPLES)][:_SAMPLES]
