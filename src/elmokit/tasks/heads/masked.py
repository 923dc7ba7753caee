"""Sums, means and maxima over the real tokens of a padded batch; zeros where there are none."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Shares (…, T) of the True positions by scores (…, T); zero at the others."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return hidden.softmax(-1).masked_fill(~mask, 0)


def weighted_sum(weights: Tensor, x: Tensor) -> Tensor:
    """Sums (B, D) of x (B, T, D) with weights (B, T)."""
    return (weights[:, None].to(x.dtype) @ x).squeeze(1)


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Means (B, D) of x (B, T, D) over the True positions of mask (B, T)."""
    total = x.masked_fill(~mask[..., None], 0).sum(1)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """Maxima (B, D) of x (B, T, D) over the True positions of mask (B, T)."""
    if not mask.shape[1]:
        return x.new_zeros(x.shape[0], x.shape[2])
    hidden = x.masked_fill(~mask[..., None], torch.finfo(x.dtype).min)
    # the gradient goes to one of equal values, and finding it is faster than with amax
    return hidden.max(1).values.masked_fill(~mask.any(1, keepdim=True), 0)
