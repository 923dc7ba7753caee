"""Choose layers, and combine them into one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from elmokit.arguments import described
from elmokit.errors import InputError
from elmokit.nn.scalar_mix import ScalarMix

Layers = str | int | Sequence[int] | npt.NDArray[np.integer[Any]]
"""One of "all", "top", "average" and "mix", the number of a layer, or several numbers."""


@dataclass(frozen=True)
class LayerChoice:
    """A checked choice of layers of a model.

    Args:
        layers: The numbers of the layers, or "average" or "mix".
        stacked: Whether each array has a layer axis in front.
        upto: The last layer to compute.
    """

    layers: tuple[int, ...] | str
    stacked: bool
    upto: int

    @classmethod
    def parse(cls, layers: Layers, n_layers: int) -> LayerChoice:
        """Check a choice for a model with n_layers layers, including the token layer."""
        top = n_layers - 1
        if isinstance(layers, str):
            if layers == "all":
                return cls(tuple(range(n_layers)), True, top)
            if layers == "top":
                return cls((top,), False, top)
            if layers in ("average", "mix"):
                return cls(layers, False, top)
        given: Any = layers.tolist() if isinstance(layers, np.ndarray) else layers
        several = isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray)
        numbers = list(given) if several else [given]
        if numbers and all(_is_layer(number, n_layers) for number in numbers):
            chosen = tuple(int(number) % n_layers for number in numbers)
            return cls(chosen, several, max(chosen))
        raise InputError(
            f"layers must be all, top, average, mix, or numbers from 0 to {top}, not "
            f"{described(layers)}; -1 to -{n_layers} count from the top"
        )

    @property
    def layer_shape(self) -> tuple[int, ...]:
        """The axes before (T, D) in the shape of a sentence's array."""
        return (len(self.layers),) if self.stacked else ()

    def apply(self, layers: Tensor, mix: ScalarMix) -> Tensor:
        """Layers 0 … upto, (upto + 1, B, T, D), to (K, B, T, D); K is 1 if not stacked."""
        if self.layers == "mix":
            return mix(layers)[None]
        if self.layers == "average":
            return layers.mean(0, keepdim=True)
        numbers = [int(number) for number in self.layers]
        if len(numbers) == 1:
            return layers[numbers[0] : numbers[0] + 1]
        return layers if numbers == list(range(len(layers))) else layers[numbers]


def _is_layer(number: object, n_layers: int) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        return False
    return -n_layers <= int(number) < n_layers
