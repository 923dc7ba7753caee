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

from elmokit.errors import ConfigError
from elmokit.kernels import softmax_steps
from elmokit.nn.softmax import FullSoftmax

_LOGITS = {"cpu": 1 << 22, "cuda": 1 << 29}  # held at a time


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
    weight, bias = softmax.weight, softmax.bias
    chosen, chosen_bias = weight[negatives], bias[negatives] - log_q[negatives]
    own = (h.float() * weight[targets]).sum(-1) + bias[targets] - log_q[targets]
    return _apply(h, chosen, chosen_bias, targets, negatives, own)


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
        own: Tensor | None,
        needed: bool,
    ) -> Tensor:
        """Σ of losses; arguments as of :func:`elmokit.kernels.softmax_torch.cross_entropy`."""
        cross_entropy = softmax_steps(h.device).cross_entropy
        dtype = _dtype(h)
        h_, weight_, bias_ = h.to(dtype), weight.to(dtype), bias.float()
        own_ = None if own is None else own.float()
        width = h.shape[1]
        # a column of ones gives the bias's gradient along with the weights'
        with_one = torch.cat([h_, h_.new_ones(len(h), 1), h_.new_zeros(len(h), 7)], 1)
        total = h.new_zeros((), dtype=torch.float32)
        d_h = torch.empty_like(h_)
        d_weight = torch.zeros(len(weight), width + 8, device=h.device)
        d_own = None if own_ is None else torch.empty_like(own_)
        rows = max(1, _LOGITS[h.device.type] // len(weight))
        for start in range(0, len(h), rows):
            part = slice(start, start + rows)
            logits = torch.mm(h_[part], weight_.t())
            mine = None if own_ is None else own_[part]
            losses, d_mine = cross_entropy(logits, bias_, targets[part], ids, mine, needed)
            total += losses.sum()
            if needed:
                d_h[part] = torch.mm(logits, weight_)
                d_weight += torch.mm(logits.t(), with_one[part])
                if d_own is not None and d_mine is not None:
                    d_own[part] = d_mine
        if needed:
            ctx.save_for_backward(
                d_h.to(h.dtype),
                d_weight[:, :width].to(weight.dtype),
                d_weight[:, width].to(bias.dtype),
                *([] if own is None or d_own is None else [d_own.to(own.dtype)]),
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of h, weight, bias and own."""
        d_h, d_weight, d_bias, *d_own = (g * scale.to(g.dtype) for g in ctx.saved_tensors)
        return d_h, d_weight, d_bias, None, None, d_own[0] if d_own else None, None
