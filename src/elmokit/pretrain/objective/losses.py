"""Training losses: full, sampled and adaptive softmax.

Each returns the sum of −log p over its rows without ever holding the logits of all rows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from elmokit.kernels.gpu import softmax_steps
from elmokit.nn.softmax import FullSoftmax

_LOGITS = {"cpu": 1 << 22, "cuda": 1 << 29}  # held at a time
_EVEN = {"cpu": 1, "cuda": 64}  # pad the rows of a matrix product to a multiple of this


def full_loss(softmax: FullSoftmax, h: Tensor, targets: Tensor) -> Tensor:
    """Return Σ −log p of targets (N,) given h (N, P), over the whole vocabulary."""
    return _apply(h, softmax.weight, softmax.bias, targets, None, None)


def sampled_loss(
    softmax: FullSoftmax, h: Tensor, targets: Tensor, negatives: Tensor, log_q: Tensor
) -> Tensor:
    """Return Σ −log p of targets (N,) given h (N, P), among the target and sampled negatives.

    Args:
        softmax: Weights and biases of the whole vocabulary.
        h: (N, P).
        targets: (N,).
        negatives: Distinct words (S,); a row ignores the one that is its target.
        log_q: Log of the probability of each word (V,) to be among the negatives.
    """
    return _apply(h, softmax.weight, softmax.bias, targets, negatives, log_q)


def log_expected(vocabulary_size: int, tries: int, device: torch.device) -> Tensor:
    """Return the log probability of each word (V,) to be sampled within this many draws."""
    return torch.log(-torch.expm1(tries * _log_missed(vocabulary_size, device))).float()


@cache
def _log_missed(vocabulary_size: int, device: torch.device) -> Tensor:
    """Return the log probability of each word (V,) not to be sampled in one draw."""
    rank = torch.arange(vocabulary_size, dtype=torch.float64, device=device)
    return torch.log1p(-torch.log1p(1 / (rank + 1)) / math.log(vocabulary_size + 1))


def adaptive_loss(softmax: nn.AdaptiveLogSoftmaxWithLoss, h: Tensor, targets: Tensor) -> Tensor:
    """Return Σ −log p of targets (N,) given h (N, P), with rare words in clusters."""
    rows = max(1, _LOGITS[h.device.type] // (2 * softmax.head_size))
    total = h.new_zeros((), dtype=torch.float32)
    for start in range(0, len(h), rows):
        part = slice(start, start + rows)
        # recomputed in the backward pass, to save the memory of the logits
        loss = checkpoint(_adaptive_part, softmax, h[part], targets[part], use_reentrant=False)
        total = total + loss
    return total


def _adaptive_part(softmax: nn.AdaptiveLogSoftmaxWithLoss, h: Tensor, targets: Tensor) -> Tensor:
    # PyTorch's module copies rows of its own dtype into rows of the input's dtype; these differ
    # under GPU autocast
    with torch.autocast(h.device.type, enabled=False):
        return -softmax(h.float(), targets).output.sum()


def _apply(*arguments: Tensor | None) -> Tensor:
    gradients = torch.is_grad_enabled()  # always False inside the function itself
    loss: Tensor = _Softmax.apply(*arguments, gradients)  # type: ignore[no-untyped-call]
    return loss


def _dtype(h: Tensor) -> torch.dtype:
    """Return the dtype of matrix products."""
    kind = h.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else h.dtype


class _Softmax(torch.autograd.Function):
    """Computes gradients in the forward pass, group by group, while the logits are in memory."""

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
        """Return the sum of losses (N,), over the whole vocabulary or the sampled ids (S,)."""
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
        # tensor cores need row counts that are multiples of _EVEN; padded rows contribute nothing
        some_ = F.pad(some.to(dtype), (0, 0, 0, -n % _EVEN[h.device.type]))
        # a column of ones yields the gradient of the bias along with that of the weights
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
        """Return the gradients of h, weight and bias."""
        d_h, d_weight, d_bias = (g * scale.to(g.dtype) for g in ctx.saved_tensors)
        return d_h, d_weight, d_bias, None, None, None, None
