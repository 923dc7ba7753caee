"""The softmax of the language model, shared by both directions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ModelConfig
from elmokit.kernels.softmax_torch import log_sums

_LOGITS = 1 << 26  # logits in memory at a time: 256 MiB of float32, for any V


class FullSoftmax(nn.Module):
    """log p(word) = log softmax(h · Wᵀ + b) over the whole vocabulary.

    Args:
        vocabulary_size: V.
        input_dim: P, the width of one direction of the top layer.
    """

    def __init__(self, vocabulary_size: int, input_dim: int) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.weight = nn.Parameter(torch.empty(vocabulary_size, input_dim))
        self.bias = nn.Parameter(torch.empty(vocabulary_size))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise the weights as bilm-tf does."""
        if self.bias.is_meta:  # weights will be loaded
            return
        nn.init.normal_(self.weight, 0, 1 / math.sqrt(self.weight.shape[1]))
        nn.init.zeros_(self.bias)

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities (N, V) for h (N, P)."""
        return torch.log_softmax(F.linear(h, self.weight, self.bias), -1)

    def score(self, h: Tensor, targets: Tensor) -> Tensor:
        """Log-probabilities (N,) of target words (N,), without all logits in memory at once."""
        if h.device.type == "cpu" and not torch.is_grad_enabled():
            picked = (h * self.weight[targets]).sum(-1) + self.bias[targets]
            return picked - log_sums(h, self.weight, self.bias)
        rows = max(1, _LOGITS // len(self.bias))
        scores = [h.new_zeros(0)]
        for start in range(0, len(h), rows):
            logits = F.linear(h[start : start + rows], self.weight, self.bias)
            picked = logits.gather(-1, targets[start : start + rows, None]).squeeze(-1)
            scores.append(picked - torch.logsumexp(logits, -1))
        return torch.cat(scores)


class AdaptiveSoftmax(nn.Module):
    """Softmax with clusters of rare words that have shorter vectors (Grave et al. 2017).

    Args:
        vocabulary_size: V; the vocabulary starts with the most frequent words.
        input_dim: P.
        cutoffs: The first id of each cluster.
    """

    def __init__(self, vocabulary_size: int, input_dim: int, cutoffs: tuple[int, ...]) -> None:
        super().__init__()
        self.input_dim = input_dim
        # the ratio of the widths of successive clusters, chosen to keep at least 8 dimensions
        ratio = min(4.0, max(1.0, (input_dim / 8) ** (1 / len(cutoffs))))
        self.inner = nn.AdaptiveLogSoftmaxWithLoss(
            input_dim, vocabulary_size, list(cutoffs), ratio, head_bias=True
        )

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities (N, V) for h (N, P)."""
        return self.inner.log_prob(h)

    def score(self, h: Tensor, targets: Tensor) -> Tensor:
        """Log-probabilities (N,) of target words (N,), some rows at a time."""
        rows = max(1, _LOGITS // (2 * self.inner.head_size))
        scores = [h.new_zeros(0)]
        for start in range(0, len(h), rows):
            part = slice(start, start + rows)
            scores.append(self.inner(h[part], targets[part]).output)
        return torch.cat(scores)


Softmax = FullSoftmax | AdaptiveSoftmax


def make_softmax(config: ModelConfig) -> Softmax:
    """Create the softmax that a config describes."""
    size, width = config.vocabulary_size, config.context.projection_dim
    if config.softmax_cutoffs:
        return AdaptiveSoftmax(size, width, config.softmax_cutoffs)
    return FullSoftmax(size, width)
