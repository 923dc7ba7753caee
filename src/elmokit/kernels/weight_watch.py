"""Detecting that weights have changed since something was computed from them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

_SAMPLES = 16  # values compared in each tensor


class WeightSnapshot:
    """What some weights were: their addresses, PyTorch's change counters, and a few values.

    The counters miss fused optimizers and changes through ``.data``. Those change nearly every
    value, so a sample of each tensor reveals them. The weights themselves are not kept.
    """

    @torch.no_grad()
    def __init__(self, weights: Iterable[Tensor]) -> None:
        weights = list(weights)
        self._addresses = [w.data_ptr() for w in weights]
        self._versions = [0 if w.is_inference() else w._version for w in weights]
        self._sample = torch.cat([_sample(w) for w in weights])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WeightSnapshot)
            and self._addresses == other._addresses
            and self._versions == other._versions
            and self._sample.dtype == other._sample.dtype
            and torch.equal(self._sample, other._sample)
        )

    __hash__ = None  # type: ignore[assignment]


def _sample(weight: Tensor) -> Tensor:
    flat = weight.reshape(-1)
    return flat[:: max(1, len(flat) // _SAMPLES)][:_SAMPLES]
