"""How wrong the predictions are: full, sampled and adaptive softmax.

Each gives the sum of −log p over some rows, and never holds the logits of all rows at once.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from elmokit.errors import ConfigError
from elmokit.kernels.gpu import softmax_steps
from elmokit.nn.softmax import FullSoftmax

_LOGITS = {"cpu": 1 << 22, "cuda": 1 << 29}  # held at a time
_EVEN = {"cpu": 1, "cuda": 64}  # rows of a product's matrix are a multiple of this


def full_loss(softmax: FullSoftmax, h: Tensor, targets: Tensor) -> Tensor:
    """Σ −log p of targets (N,) for h (N, P), over the whole vocabulary."""
    return _apply(h, softmax.weight, softmax.bias, targets, None, None)


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
    return _apply(h, softmax.weight, softmax.bias, targets, negatives, log_q)


class Negatives:
    """Words drawn by rank, so that the k-th most frequent comes about as often as 1 / k.

    Args:
        vocabulary_size: V; words are sorted by frequency.
        samples: How many distinct ones to draw, fewer than V.
    """

    def __init__(self, vocabulary_size: int, samples: int) -> None:
        if samples >= vocabulary_size:
            raise ConfigError(f"{samples:,} words cannot be drawn from {vocabulary_size:,}")
        self._n, self._samples = vocabulary_size, samples

    def draw(self, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], int]:
        """Distinct words (S,), and how many tries they took."""
        drawn = np.zeros(0, np.int64)
        while True:
            more = rng.random(4 * self._samples)
            words = np.exp(more * math.log(self._n + 1)).astype(np.int64) - 1
            drawn = np.concatenate([drawn, words.clip(0, self._n - 1)])
            found, first = np.unique(drawn, return_index=True)
            if len(found) >= self._samples:
                break
        first = np.sort(first)[: self._samples]
        return drawn[first], int(first[-1]) + 1


def log_expected(vocabulary_size: int, tries: int, device: torch.device) -> Tensor:
    """Log of the chance of each word (V,) to be among those drawn in so many tries."""
    return torch.log(-torch.expm1(tries * _log_missed(vocabulary_size, device))).float()


@cache
def _log_missed(vocabulary_size: int, device: torch.device) -> Tensor:
    """Log of the chance of each word (V,) not to be drawn in one try."""
    rank = torch.arange(vocabulary_size, dtype=torch.float64, device=device)
    return torch.log1p(-torch.log1p(1 / (rank + 1)) / math.log(vocabulary_size + 1))


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
    # PyTorch's module copies rows of its own dtype into rows of the input's, which differ under
    # the autocast of a GPU
    with torch.autocast(h.device.type, enabled=False):
        return -softmax(h.float(), targets).output.sum()


def _apply(*arguments: Tensor | None) -> Tensor:
    gradients = torch.is_grad_enabled()  # which the function itself cannot see
    loss: Tensor = _Softmax.apply(*arguments, gradients)  # type: ignore[no-untyped-call]
    return loss


def _dtype(h: Tensor) -> torch.dtype:
    """What products are made in."""
    kind = h.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else h.dtype


class _Softmax(torch.autograd.Function):
    """The gradients are made on the way forward, group by group, while the logits are at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        ids: Tensor | None,
        log_q: Tensor | None,
        needed: bool,
    ) -> Tensor:
        """Σ of losses (N,), by the whole vocabulary, or by the ids (S,) drawn from it."""
        cross_entropy = softmax_steps(h.device).cross_entropy
        dtype = _dtype(h)
        h_, width = h.to(dtype), h.shape[1]
        own = d_own = None
        if ids is None or log_q is None:
            some, some_bias = weight, bias.float()
        else:
            some, some_bias = weight[ids], bias[ids].float() - log_q[ids]
            own = (h.float() * weight[targets]).sum(-1) + bias[targets] - log_q[targets]
            d_own = torch.empty_like(own)
        n = len(some)
        # tensor cores want even numbers of rows; those added have no share in anything
        some_ = F.pad(some.to(dtype), (0, 0, 0, -n % _EVEN[h.device.type]))
        # a column of ones gives the bias's gradient along with the weights'
        with_one = torch.cat([h_, h_.new_ones(len(h), 1), h_.new_zeros(len(h), 7)], 1)
        total = h.new_zeros((), dtype=torch.float32)
        d_h = torch.empty_like(h_)
        d_some = torch.zeros(len(some_), width + 8, device=h.device)
        rows = max(1, _LOGITS[h.device.type] // n)
        for start in range(0, len(h), rows):
            part = slice(start, start + rows)
            logits = torch.mm(h_[part], some_.t())
            mine = None if own is None else own[part]
            losses, d_mine = cross_entropy(
                logits[:, :n], some_bias, targets[part], ids, mine, needed
            )
            total += losses.sum()
            if needed:
                d_h[part] = torch.mm(logits, some_)
                d_some += torch.mm(logits.t(), with_one[part])
                if d_own is not None and d_mine is not None:
                    d_own[part] = d_mine
        if needed:
            if ids is None or d_own is None:
                d_all, d_own_h = d_some[:n], d_h
            else:
                d_all = torch.zeros(len(weight), width + 8, device=h.device)
                d_all.index_copy_(0, ids, d_some[:n])
                d_all.index_add_(0, targets, d_own[:, None] * with_one)
                d_own_h = d_h + (d_own[:, None] * weight[targets]).to(dtype)
            ctx.save_for_backward(
                d_own_h.to(h.dtype),
                d_all[:, :width].to(weight.dtype),
                d_all[:, width].to(bias.dtype),
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of h, weight and bias."""
        d_h, d_weight, d_bias = (g * scale.to(g.dtype) for g in ctx.saved_tensors)
        return d_h, d_weight, d_bias, None, None, None, None
