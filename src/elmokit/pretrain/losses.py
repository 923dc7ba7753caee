"""How wrong the predictions are: full, sampled and adaptive softmax.

Each gives the sum of −log p over some rows, and never holds the logits of all rows at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from elmokit.nn.softmax import FullSoftmax

_LOGITS = {"cpu": 1 << 22, "cuda": 1 << 29}  # held at a time


def full_loss(softmax: FullSoftmax, h: Tensor, targets: Tensor) -> Tensor:
    """Σ −log p of targets (N,) for h (N, P), over the whole vocabulary."""
    return _apply(_Full, h, softmax.weight, softmax.bias, targets)


def sampled_loss(
    softmax: FullSoftmax, h: Tensor, targets: Tensor, negatives: Tensor, log_q: Tensor
) -> Tensor:
    """Σ −log p of targets (N,) for h (N, P), among the target and some negatives.

    Args:
        softmax: Weights and biases of all words.
        h: (N, P).
        targets: (N,).
        negatives: Distinct words (S,); where one is a row's target, it does not count there.
        log_q: log of how often each word (V,) is expected among the negatives.
    """
    weight, bias = softmax.weight, softmax.bias
    chosen, chosen_bias = weight[negatives], bias[negatives] - log_q[negatives]
    own, own_bias = weight[targets], bias[targets] - log_q[targets]
    return _apply(_Sampled, h, chosen, chosen_bias, own, own_bias, targets, negatives)


class Negatives:
    """Words drawn by rank, so that the k-th most frequent comes about as often as 1 / k.

    Args:
        vocabulary_size: V; words are sorted by frequency.
        samples: How many distinct ones to draw, fewer than V.
    """

    def __init__(self, vocabulary_size: int, samples: int) -> None:
        self._n, self._samples = vocabulary_size, samples
        rank = np.arange(vocabulary_size)
        self._log_not = np.log1p(-np.log1p(1 / (rank + 1)) / math.log(vocabulary_size + 1))

    def draw(
        self, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Distinct words (S,), and log of how often each word (V,) was to be expected."""
        drawn = np.zeros(0, np.int64)
        while True:
            more = rng.random(4 * self._samples)
            words = np.exp(more * math.log(self._n + 1)).astype(np.int64) - 1
            drawn = np.concatenate([drawn, words.clip(0, self._n - 1)])
            found, first = np.unique(drawn, return_index=True)
            if len(found) >= self._samples:
                break
        first = np.sort(first)[: self._samples]
        tries = int(first[-1]) + 1
        expected = -np.expm1(tries * self._log_not)  # the chance to be among so many tries
        return drawn[first], np.log(expected).astype(np.float32)


def adaptive_loss(softmax: nn.AdaptiveLogSoftmaxWithLoss, h: Tensor, targets: Tensor) -> Tensor:
    """Σ −log p of targets (N,) for h (N, P), frequent words first, rare ones in clusters."""
    rows = max(1, _LOGITS[h.device.type] // (2 * softmax.head_size))
    total = h.new_zeros((), dtype=torch.float32)
    for start in range(0, len(h), rows):
        part = slice(start, start + rows)
        # computed again on the way back, so that logits are not kept
        loss = checkpoint(_adaptive_part, softmax, h[part], targets[part], use_reentrant=False)
        total = total + loss
    return total


def _adaptive_part(softmax: nn.AdaptiveLogSoftmaxWithLoss, h: Tensor, targets: Tensor) -> Tensor:
    return -softmax(h, targets).output.float().sum()


def _apply(function: Any, *arguments: Tensor) -> Tensor:
    loss: Tensor = function.apply(*arguments)
    return loss


def _dtype(h: Tensor) -> torch.dtype:
    """What products are made in."""
    kind = h.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else h.dtype


class _Full(torch.autograd.Function):
    """The gradients are made on the way forward, group by group, while the logits are at hand."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        needed = any(ctx.needs_input_grad[:3])
        dtype = _dtype(h)
        h_, weight_ = h.to(dtype), weight.to(dtype)
        total = h.new_zeros((), dtype=torch.float32)
        d_h = torch.empty_like(h_) if needed else None
        d_weight = torch.zeros_like(weight, dtype=torch.float32) if needed else None
        d_bias = torch.zeros_like(bias, dtype=torch.float32) if needed else None
        rows = max(1, _LOGITS[h.device.type] // len(weight))
        for start in range(0, len(h), rows):
            part = slice(start, start + rows)
            logits = torch.mm(h_[part], weight_.t()).float().add_(bias)
            norm = torch.logsumexp(logits, -1, keepdim=True)
            own = targets[part, None]
            total += (norm - logits.gather(1, own)).sum()
            if d_h is None or d_weight is None or d_bias is None:
                continue
            shares = logits.sub_(norm).exp_()
            shares.scatter_add_(1, own, -torch.ones_like(norm))
            d_bias += shares.sum(0)
            shares_ = shares.to(dtype)
            d_h[part] = torch.mm(shares_, weight_)
            d_weight += torch.mm(shares_.t(), h_[part])
        if d_h is not None and d_weight is not None and d_bias is not None:
            ctx.save_for_backward(d_h.to(h.dtype), d_weight.to(weight.dtype), d_bias.to(bias.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        d_h, d_weight, d_bias = ctx.saved_tensors
        return d_h * scale.to(d_h.dtype), d_weight * scale, d_bias * scale, None


class _Sampled(torch.autograd.Function):
    """Likewise, over the drawn words and each row's own."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        chosen: Tensor,
        chosen_bias: Tensor,
        own: Tensor,
        own_bias: Tensor,
        targets: Tensor,
        negatives: Tensor,
    ) -> Tensor:
        needed = any(ctx.needs_input_grad[:5])
        dtype = _dtype(h)
        h_, chosen_ = h.to(dtype), chosen.to(dtype)
        mine = (h.float() * own.float()).sum(-1) + own_bias.float()
        total = h.new_zeros((), dtype=torch.float32)
        d_h = torch.empty_like(h_) if needed else None
        d_chosen = torch.zeros_like(chosen, dtype=torch.float32) if needed else None
        d_bias = torch.zeros_like(chosen_bias, dtype=torch.float32) if needed else None
        d_mine = torch.empty_like(mine) if needed else None
        rows = max(1, _LOGITS[h.device.type] // len(chosen))
        for start in range(0, len(h), rows):
            part = slice(start, start + rows)
            logits = torch.mm(h_[part], chosen_.t()).float().add_(chosen_bias)
            logits.masked_fill_(targets[part, None] == negatives, -math.inf)
            norm = torch.logaddexp(torch.logsumexp(logits, -1), mine[part])
            total += (norm - mine[part]).sum()
            if d_h is None or d_chosen is None or d_bias is None or d_mine is None:
                continue
            d_mine[part] = (mine[part] - norm).exp() - 1
            shares = logits.sub_(norm[:, None]).exp_()
            d_bias += shares.sum(0)
            shares_ = shares.to(dtype)
            d_h[part] = torch.mm(shares_, chosen_)
            d_chosen += torch.mm(shares_.t(), h_[part])
        if d_h is not None and d_chosen is not None and d_bias is not None and d_mine is not None:
            d_h = d_h.float() + d_mine[:, None] * own.float()
            d_own = d_mine[:, None] * h.float()
            ctx.save_for_backward(
                d_h.to(h.dtype),
                d_chosen.to(chosen.dtype),
                d_bias.to(chosen_bias.dtype),
                d_own.to(own.dtype),
                d_mine.to(own_bias.dtype),
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        return (*(g * scale.to(g.dtype) for g in ctx.saved_tensors), None, None)
