"""What LSTMs and transformers have in common: layers of both directions over packed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from elmokit.kernels.ragged import Ragged


@dataclass
class BiLMState:
    """The states of all layers for B sentences; empty tensors for a transformer, which has none."""

    layers: list[tuple[Tensor, Tensor]]
    """For each layer the outputs h (R, B, P) and the memory cells c (R, B, H)."""

    def __len__(self) -> int:
        return self.layers[0][0].shape[1]

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors."""
        return [t for state in self.layers for t in state]

    @property
    def widths(self) -> list[tuple[int, int, int]]:
        """Directions R and widths P and H of each layer."""
        return [(len(h), h.shape[2], c.shape[2]) for h, c in self.layers]

    def map(self, change: Callable[[Tensor], Tensor]) -> BiLMState:
        """The same with a function applied to every tensor (R, B, …)."""
        return BiLMState([(change(h), change(c)) for h, c in self.layers])

    def rows(self, start: int, stop: int | None) -> BiLMState:
        """The states of some sentences."""
        return self.map(lambda t: t[:, start:stop])

    def where(self, chosen: Tensor, other: BiLMState) -> BiLMState:
        """These states for the sentences chosen (B,), the other states for the rest."""

        def merge(own: Tensor, others: Tensor) -> Tensor:
            return torch.where(chosen.to(own.device)[:, None], own, others)

        pairs = zip(self.layers, other.layers, strict=True)
        return BiLMState([(merge(h, old_h), merge(c, old_c)) for (h, c), (old_h, old_c) in pairs])

    @staticmethod
    def cat(states: Sequence[BiLMState]) -> BiLMState:
        """The states of several batches as those of one."""
        layers = []
        for some in zip(*(state.layers for state in states), strict=True):
            h, c = zip(*some, strict=True)
            layers.append((torch.cat(h, 1), torch.cat(c, 1)))
        return BiLMState(layers)


class LayerRows(NamedTuple):
    """The output of one layer over packed rows."""

    rows: Tensor | Sequence[Tensor]
    """For each direction (N, P), in its reading order."""
    state: tuple[Tensor, Tensor]
    """h (R, B, P) and c (R, B, H) after each sentence, in the order of the rows."""


class Context(Protocol):
    """Layers of any kind that read sentences in one or two directions."""

    def zero_state(self, n: int) -> BiLMState:
        """The state before the first token, for n sentences."""
        ...

    def read(
        self,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState | None = None,
        upto: int | None = None,
        dropout: float = 0.0,
        precision: str = "float32",
    ) -> Iterator[LayerRows]:
        """Run the layers, one after another.

        Args:
            rows: Token vectors (R, N, P); each direction's in its own reading order.
            ragged: How the rows are arranged.
            start: The initial state, in the order of the rows; None for zeros.
            upto: How many layers to run; None for all.
            dropout: Share of each layer's input set to zero.
            precision: What a kernel without gradients may round weights to.
        """
        ...
