"""Cross-entropy of logits, with gradients in place, and sums over a vocabulary, in PyTorch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_ROWS, _WORDS = 1024, 2048  # logits at a time: 8 MiB of float32, which a CPU's caches keep


def cross_entropy(
    logits: Tensor,
    bias: Tensor,
    targets: Tensor,
    ids: Tensor | None,
    own: Tensor | None,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Compute losses from logits, and overwrite the logits with their gradients.

    Args:
        logits: (N, V) without the bias. Replaced by the gradient of the sum of the losses if
            ``gradient`` is set, otherwise undefined afterwards.
        bias: (V,) in float32.
        targets: The target words (N,): columns, or word ids if ``ids`` is given.
        ids: The word id (V,) of every column, if the columns are a sample of the vocabulary. A
            column that is the target of a row does not count for that row.
        own: With ids, the logits (N,) of the targets, bias included, in float32.
        gradient: Whether gradients are needed.

    Returns:
        Losses (N,) in float32, and with ids the gradient (N,) of own.
    """
    # in place if possible, because the logits are not needed again
    x = logits.add_(bias) if logits.dtype == bias.dtype else logits.float() + bias
    if ids is None or own is None:
        mine = x.gather(1, targets[:, None]).squeeze(1)
        norm = torch.logsumexp(x, -1)
    else:
        mine = own
        x.masked_fill_(targets[:, None] == ids, -math.inf)
        norm = torch.logaddexp(torch.logsumexp(x, -1), mine)
    losses = norm - mine
    if not gradient:
        return losses, None
    shares = x.sub_(norm[:, None]).exp_()
    if ids is None:
        shares.scatter_add_(1, targets[:, None], -torch.ones_like(norm)[:, None])
    if shares is not logits:
        logits.copy_(shares)
    return losses, None if ids is None else (mine - norm).exp() - 1


def log_sums(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return log Σ exp(h · Wᵀ + b) over all words (N,), from a block of logits at a time.

    On a CPU this takes two thirds of the time of :func:`torch.logsumexp` of all logits, which
    go to memory and back several times. It has no gradient.

    Args:
        h: (N, P).
        weight: (V, P).
        bias: (V,).
    """
    found = h.new_empty(len(h))
    block = h.new_empty(min(_ROWS, len(h)) * _WORDS)
    for start in range(0, len(h), _ROWS):
        x = h[start : start + _ROWS]
        most = h.new_full((len(x),), torch.finfo(h.dtype).min)
        total = h.new_zeros(len(x))
        for first in range(0, len(weight), _WORDS):
            words = weight[first : first + _WORDS]
            logits = block[: len(x) * len(words)].view(len(x), len(words))
            torch.addmm(bias[first : first + _WORDS], x, words.t(), out=logits)
            top = torch.maximum(most, logits.amax(1))
            logits.sub_(top[:, None]).exp_()
            total.mul_(most.sub_(top).exp_()).add_(logits.sum(1))
            most = top
        found[start : start + _ROWS] = total.log_().add_(most)
    return found
