"""Cross-entropy of logits, with gradients in place, in PyTorch."""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
