"""Noticing that weights are not what they were when something was computed from them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_SAMPLES = 16  # values looked at in each tensor


class WeightSnapshot:
    """What a module's weights were: where they lay, PyTorch's count of changes, some values.

    The count does not see fused optimizers, nor changes through ``.data``; those change nearly all
    values, so that a few of each tensor tell. The module itself is not kept.
    """

    @torch.no_grad()
    def __init__(self, module: nn.Module) -> None:
        weights = list(module.parameters())
        self._places = [p.data_ptr() for p in weights]
        self._counts = [0 if p.is_inference() else p._version for p in weights]
        self._sample = torch.cat([_some(p) for p in weights])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WeightSnapshot)
            and self._places == other._places
            and self._counts == other._counts
            and self._sample.dtype == other._sample.dtype
            and torch.equal(self._sample, other._sample)
        )

    __hash__ = None  # type: ignore[assignment]


def _some(weight: Tensor) -> Tensor:
    flat = weight.reshape(-1)
    return flat[:: max(1, len(flat) // _SAMPLES)][:_SAMPLES]
