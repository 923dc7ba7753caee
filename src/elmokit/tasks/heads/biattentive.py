"""The biattentive classification network, ELMo's classifier of sentences.

McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors", section 5; Peters et
al. (2018), "Deep contextualized word representations", supplement, for the changes with ELMo.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.arguments import one_of
from elmokit.errors import InputError
from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.encoders import BiLSTMEncoder
from elmokit.tasks.heads.masked import masked_softmax
from elmokit.tasks.heads.sentence_pooling import SentencePooling

OUTPUTS = ("relu", "maxout")
_PIECES = 4  # linear functions in each maxout unit


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses its running statistics for a batch of one in training."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, D) to (B, D)."""
        if len(input) > 1:
            return super().forward(input)
        mean, variance = self.running_mean, self.running_var
        return F.batch_norm(input, mean, variance, self.weight, self.bias, eps=self.eps)


class Maxout(nn.Module):
    """The maximum of several linear functions.

    Args:
        input_dim: Width of the input.
        output_dim: Width of the output.
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_dim, output_dim * _PIECES)

    def forward(self, x: Tensor) -> Tensor:
        """(…, input_dim) to (…, output_dim)."""
        return self.linear(x).unflatten(-1, (-1, _PIECES)).amax(-1)


class BiattentiveClassifier(nn.Module):
    """Feed-forward layer, biLSTM, attention to itself, biLSTM, pooling, output network.

    The second biLSTM reads [x; x − a; x · a] at each token, where x is the state of the first
    biLSTM and a the mean of all states, weighted by the softmax of their dot products with x.
    Its states are pooled by maximum, mean, minimum and attention.

    Args:
        input_dim: Width of the input.
        hidden_dim: Width H of the feed-forward layer and of each direction of the biLSTMs; 300 in
            the ELMo paper.
        n_classes: K.
        dropout: Share of values dropped before each feed-forward and output layer in training.
        second_dim: Width of a second input, 0 for none. It joins the states of the second biLSTM
            before they are pooled. In the ELMo paper it is a second mix of ELMo's layers.
        output: "relu" for two ReLU layers of widths 4H and 2H, as in the ELMo paper, or "maxout"
            for three maxout layers with batch normalisation before each, as in McCann et al. In
            training, batch normalisation makes a sentence's result depend on its batch.
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        n_classes: int,
        dropout: float = 0.0,
        second_dim: int = 0,
        output: str = "relu",
    ) -> None:
        super().__init__()
        self.second_dim = second_dim
        states = 2 * hidden_dim
        self.dropout = Dropout(dropout)
        self.feed_forward = nn.Linear(input_dim, hidden_dim)
        self.encoder = BiLSTMEncoder(hidden_dim, hidden_dim)
        self.integrator = BiLSTMEncoder(3 * states, hidden_dim)
        self.pooling = SentencePooling(states + second_dim, ("max", "mean", "min", "attention"))
        widths = [self.pooling.output_dim, 2 * states, states]
        layers: list[nn.Module] = []
        if one_of(output, "output", OUTPUTS) == "relu":
            for a, b in pairwise(widths):
                layers += [Dropout(dropout), nn.Linear(a, b), nn.ReLU()]
            layers += [Dropout(dropout), nn.Linear(widths[-1], n_classes)]
        else:
            for a, b in pairwise([*widths, n_classes]):
                layers += [BatchNorm(a), Dropout(dropout), Maxout(a, b)]
        self.output = nn.Sequential(*layers)

    def forward(self, x: Tensor, mask: Tensor, second: Tensor | None = None) -> Tensor:
        """Scores (B, K) of the classes, before the softmax.

        Args:
            x: Inputs (B, T, input_dim).
            mask: True (B, T) at tokens, which are at the start of each row.
            second: The second input (B, T, second_dim).
        """
        if (second.shape[2] if second is not None else 0) != self.second_dim:
            given = "none" if second is None else f"one of {second.shape[2]}"
            raise InputError(f"expected a second input of width {self.second_dim}, not {given}")
        x = self.encoder(torch.relu(self.feed_forward(self.dropout(x))), mask)
        attended = attend_to_itself(x, mask)
        states = self.integrator(torch.cat([x, x - attended, x * attended], 2), mask)
        if second is not None:
            states = torch.cat([states, second.to(states.dtype)], 2)
        return self.output(self.pooling(states, mask))


def attend_to_itself(x: Tensor, mask: Tensor) -> Tensor:
    """Mean (B, T, D) of the real tokens for each token, weighted by softmax(x · xᵀ)."""
    # with both sides equal the two attentions of the paper are the same
    return masked_softmax(x @ x.transpose(1, 2), mask[:, None]).to(x.dtype) @ x
