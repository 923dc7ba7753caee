"""A deep encoder for semantic roles: LSTMs of alternating direction with highway connections.

He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmokit.tasks.heads.encoders import LockedDropout, draw_weights, taken, turned


class HighwayLSTM(nn.Module):
    """An LSTM whose output is mixed with its input by a gate.

    The output is r · h + (1 − r) · W x, where h is the LSTM's state and r = σ(U x). In the paper
    the gate is inside the cell: r also reads the state before, and the mixed output is the state
    that the next step reads. A cell like that needs a loop over the words. Outside the cell, the
    same connection around a layer leaves the loop to cuDNN, and its products are computed for all
    words at once.

    Args:
        input_dim: Width X of the input.
        hidden_dim: Width H of the output.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_dim, hidden_dim, batch_first=True)
        self.highway = nn.Linear(input_dim, 2 * hidden_dim)
        draw_weights(self.lstm)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, X) to (B, T, H); an output depends on the words before it, not on those after."""
        gate, carried = self.highway(x).chunk(2, -1)
        return torch.lerp(carried, self.lstm(x)[0], gate.sigmoid())


class AlternatingLSTM(nn.Module):
    """A stack of LSTMs: the first reads forward, the second backward, and so on.

    Each reads the output of the one below it, with locked dropout between them. The paper drops
    parts of the state inside a layer, which cuDNN cannot do.

    Args:
        input_dim: Width X of the input.
        hidden_dim: Width H of each layer.
        n_layers: The number of layers; 8 in the paper.
        dropout: Share of dimensions dropped between layers in training; 0.1 in the paper.
    """

    def __init__(
        self, input_dim: int, hidden_dim: int, n_layers: int = 4, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.output_dim = hidden_dim
        self.layers = nn.ModuleList(
            HighwayLSTM(width, hidden_dim) for width in [input_dim] + [hidden_dim] * (n_layers - 1)
        )
        self.dropout = LockedDropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """States (B, T, H), zero in the padding.

        Args:
            x: Inputs (B, T, X).
            mask: True (B, T) at tokens, which are at the start of each row. Rows can be empty.
        """
        if not mask.numel():
            return x.new_zeros(*mask.shape, self.output_dim)
        order = turned(mask)
        for k, layer in enumerate(self.layers):
            # Each row is turned around within its own length, so the padding stays at the end,
            # where it cannot change the states of words.
            x = taken(self.dropout(x), order) if k else x
            x = layer(x)
        if len(self.layers) % 2 == 0:
            x = taken(x, order)
        return x.masked_fill(~mask[..., None], 0)
