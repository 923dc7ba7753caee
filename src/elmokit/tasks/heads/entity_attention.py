"""Classify the relation between two entities of a sentence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.masked import masked_max, masked_mean, masked_softmax, weighted_sum


class EntityAttention(nn.Module):
    """The entities, the sentence as they see it, and the words between them.

    A hidden layer reads four vectors: the mean of each entity's tokens, the mean of all tokens
    weighted by attention, and the maximum over the tokens between the entities. The attention
    to a state x is the softmax of w · tanh(A x + B [first entity; second entity]).

    Args:
        input_dim: Width D of a state.
        hidden_dim: Width of the attention and of the hidden layer.
        n_classes: K.
        dropout: Share of values dropped before the hidden and the output layer in training.
    """

    def __init__(
        self, input_dim: int, hidden_dim: int, n_classes: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.key = nn.Linear(input_dim, hidden_dim)
        self.query = nn.Linear(2 * input_dim, hidden_dim, bias=False)
        self.weight = nn.Linear(hidden_dim, 1, bias=False)
        self.hidden = nn.Linear(4 * input_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, n_classes)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Scores (B, K) of the relations, before the softmax.

        Args:
            x: States (B, T, D) of a biLSTM.
            mask: True (B, T) at tokens.
            first: True (B, T) at the tokens of the first entity.
            second: The same for the second entity, which can also come before the first.
        """
        entities = torch.cat([masked_mean(x, first), masked_mean(x, second)], 1)
        weights = self.attention(x, mask, entities)
        amid = masked_max(x, mask & between(first, second))
        features = torch.cat([entities, weighted_sum(weights, x), amid], 1)
        hidden = torch.relu(self.hidden(self.dropout(features)))
        return self.output(self.dropout(hidden))

    def attention(self, x: Tensor, mask: Tensor, entities: Tensor) -> Tensor:
        """The weight (B, T) of each token for a pair of entities (B, 2D)."""
        matched = torch.tanh(self.key(x) + self.query(entities)[:, None])
        return masked_softmax(self.weight(matched).squeeze(2), mask)


def between(first: Tensor, second: Tensor) -> Tensor:
    """True (B, T) after the end of the earlier entity and before the start of the later one."""
    return (_after(first) & _before(second)) | (_after(second) & _before(first))


def _before(entity: Tensor) -> Tensor:
    """True (B, T) before the first token of an entity; nowhere if it has none."""
    return (entity.cumsum(1) == 0) & entity.any(1, keepdim=True)


def _after(entity: Tensor) -> Tensor:
    """True (B, T) after the last token of an entity; nowhere if it has none."""
    return _before(entity.flip(1)).flip(1)
