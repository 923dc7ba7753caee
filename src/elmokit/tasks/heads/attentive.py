"""A classifier that pools the states of a biLSTM in several ways."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.encoders import BiLSTMEncoder
from elmokit.tasks.heads.sentence_pooling import SentencePooling


class AttentiveClassifier(nn.Module):
    """A biLSTM, pooling by maximum, mean and attention, and a hidden layer.

    It learns faster than :class:`~elmokit.tasks.heads.biattentive.BiattentiveClassifier` and takes
    a quarter of the time.

    Args:
        input_dim: Width of the input.
        hidden_dim: Width H of each direction of the biLSTM and of the hidden layer.
        n_classes: K.
        dropout: Share of values dropped before the hidden and the output layer in training.
        second_dim: Width of a second input, which joins the states before pooling; 0 for none.
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        n_classes: int,
        dropout: float = 0.0,
        second_dim: int = 0,
    ) -> None:
        super().__init__()
        self.encoder = BiLSTMEncoder(input_dim, hidden_dim)
        self.pooling = SentencePooling(2 * hidden_dim + second_dim, ("max", "mean", "attention"))
        self.output = nn.Sequential(
            Dropout(dropout),
            nn.Linear(self.pooling.output_dim, hidden_dim),
            nn.ReLU(),
            Dropout(dropout),
            nn.Linear(hidden_dim, n_classes),
        )

    def forward(self, x: Tensor, mask: Tensor, second: Tensor | None = None) -> Tensor:
        """Scores (B, K) of the classes, before the softmax.

        Args:
            x: Inputs (B, T, input_dim).
            mask: True (B, T) at tokens, which are at the start of each row.
            second: The second input (B, T, second_dim).
        """
        states = self.encoder(x, mask)
        if second is not None:
            states = torch.cat([states, second], 2)
        scores: Tensor = self.output(self.pooling(states, mask))
        return scores
