"""The weights of one LSTM as plain tensors: what every kernel takes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from elmokit.kernels.cpu_products import PackedWeights


@dataclass(frozen=True, eq=False)
class LSTMWeights:
    """Weights, biases and clipping bounds of one layer of one direction.

    The rows of the four gates come in the published order: input i, candidate j, forget f,
    output o.
    """

    input_weight: Tensor
    """(4H, input_dim)."""
    state_weight: Tensor
    """(4H, P)."""
    bias: Tensor
    """(4H,)."""
    projection: Tensor | None
    """(P, H); None if the cell's output is not projected, and then H equals P."""
    cell_clip: float | None
    """Bound of the memory cell; None for no clipping."""
    proj_clip: float | None
    """Bound of the projected output; None for no clipping."""
    forget_bias: float
    """Added to the forget gate."""
    packed: PackedWeights
    """Where the CPU kernel keeps its own copy of the weights between calls."""

    @property
    def input_dim(self) -> int:
        """Width of the input."""
        return self.input_weight.shape[1]

    @property
    def cell_dim(self) -> int:
        """Width H of the memory cell."""
        return self.bias.shape[0] // 4

    @property
    def output_dim(self) -> int:
        """Width P of the output."""
        return self.state_weight.shape[1]

    @property
    def tensors(self) -> list[Tensor]:
        """All weights and biases."""
        own = (self.input_weight, self.state_weight, self.bias, self.projection)
        return [t for t in own if t is not None]
