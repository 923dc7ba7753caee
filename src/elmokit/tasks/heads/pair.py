"""The similarity of two sentences as a distribution over a scale (Tai, Socher and Manning, 2015).

"Improved Semantic Representations From Tree-Structured Long Short-Term Memory Networks", 4.2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmokit.arguments import whole_number
from elmokit.nn.dropout import Dropout


class SiameseHead(nn.Module):
    """Two sentence vectors to scores of the points least, least + 1, …, most of a scale.

    A hidden layer reads [|u − v|; u · v], so the order of the sentences does not matter. The
    predicted similarity is the expectation of the softmax of the scores.

    Args:
        input_dim: Width D of a sentence vector.
        hidden_dim: Width of the hidden layer; 50 in the paper.
        least: The lower end of the scale: 0 for STS-B, 1 for SICK.
        most: The upper end; 5 for both.
        dropout: Share of values dropped before each layer in training.
    """

    points: Tensor

    def __init__(
        self, input_dim: int, hidden_dim: int, least: int, most: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        least = whole_number(least, "least")
        most = whole_number(most, "most", least + 1)
        self.register_buffer("points", torch.arange(least, most + 1.0), persistent=False)
        self.hidden = nn.Linear(2 * input_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, len(self.points))
        self.dropout = Dropout(dropout)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """Scores (B, points) before the softmax, from the sentence vectors u and v (B, D)."""
        compared = torch.cat([(u - v).abs(), u * v], 1)
        hidden = torch.sigmoid(self.hidden(self.dropout(compared)))
        return self.output(self.dropout(hidden))

    def expectation(self, scores: Tensor) -> Tensor:
        """The predicted similarity (B,), between the ends of the scale."""
        return (_precise(scores).softmax(1) * self.points).sum(1)

    def loss(self, scores: Tensor, gold: Tensor) -> Tensor:
        """KL divergences (B,) of the predicted distributions from those of the gold similarities.

        A gold similarity is shared between the two nearest points: its expectation is exact.

        Args:
            scores: The result of :meth:`forward`.
            gold: Similarities (B,) between the ends of the scale.
        """
        scores = _precise(scores)
        wanted = (1 - (gold.to(scores.dtype)[:, None] - self.points).abs()).clamp(min=0)
        return (torch.xlogy(wanted, wanted) - wanted * scores.log_softmax(1)).sum(1)


def _precise(scores: Tensor) -> Tensor:
    """Scores in float32 or float64."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
