"""ESIM, a network that compares two sentences word by word (Chen et al. 2017).

"Enhanced LSTM for Natural Language Inference", section 3; without the trees.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.encoders import BiLSTMEncoder
from elmokit.tasks.heads.masked import masked_softmax
from elmokit.tasks.heads.sentence_pooling import SentencePooling


class ESIM(nn.Module):
    """A biLSTM, attention of each sentence to the other, a second biLSTM, pooling, an MLP.

    Every word has a state a of the first biLSTM. Its counterpart ã is the mean of the other
    sentence's states, weighted by the softmax of their dot products with a. A projection of
    [a; ã; a − ã; a ∘ ã] is the input of the second biLSTM, whose states are pooled by mean and
    maximum. Both sentences have the same weights.

    Args:
        input_dim: Width X of the input.
        hidden_dim: Width H of each direction of the biLSTMs, of the projection and of the hidden
            layer; 300 in the paper.
        n_classes: K.
        dropout: Share of values dropped after the projection, and before both layers of the MLP.
        second_dim: Width of a second input, which joins the states of the first biLSTM; 0 for none.
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
        self.dropout = Dropout(dropout)
        self.projection = nn.Linear(4 * (2 * hidden_dim + second_dim), hidden_dim)
        self.composition = BiLSTMEncoder(hidden_dim, hidden_dim)
        self.pooling = SentencePooling(2 * hidden_dim, ("mean", "max"))
        self.output = nn.Sequential(
            Dropout(dropout),
            nn.Linear(2 * self.pooling.output_dim, hidden_dim),
            nn.Tanh(),
            Dropout(dropout),
            nn.Linear(hidden_dim, n_classes),
        )

    def forward(self, x: Tensor, mask: Tensor, second: Tensor | None = None) -> Tensor:
        """Scores (B, K) of the classes, before the softmax.

        Args:
            x: Inputs (2B, T, X); the two sentences of a pair are adjacent rows.
            mask: True (2B, T) at tokens, which are at the start of each row.
            second: The second input (2B, T, second_dim).
        """
        states = self.states(x, mask, second)
        other = swapped(states)
        found = attention(states, other, swapped(mask)).to(states.dtype) @ other
        compared = torch.cat([states, found, states - found, states * found], 2)
        projected = self.dropout(torch.relu(self.projection(compared)))
        pooled = self.pooling(self.composition(projected, mask), mask)  # (2B, 4H)
        scores: Tensor = self.output(pooled.view(len(pooled) // 2, -1))
        return scores

    def states(self, x: Tensor, mask: Tensor, second: Tensor | None = None) -> Tensor:
        """States (2B, T, D) that are compared, D = 2H + second_dim; arguments as above."""
        states: Tensor = self.encoder(x, mask)
        return states if second is None else torch.cat([states, second], 2)


def attention(x: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """Weights (B, T, U) of the words of other sentences for each word; zero in their padding.

    Args:
        x: States (B, T, D).
        other: States (B, U, D) of the other sentence.
        mask: True (B, U) at its words.
    """
    return masked_softmax(x @ other.transpose(1, 2), mask[:, None])


def swapped(rows: Tensor) -> Tensor:
    """Rows (2B, …) with the two of each pair in the other order."""
    return rows.reshape(-1, 2, *rows.shape[1:]).flip(1).flatten(0, 1)
