"""The middle of a softmax's loss, in PyTorch: logits to losses, and to their own gradients."""

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
    """Losses of some rows; their logits become the gradients of these.

    Args:
        logits: (R, V) without the bias; changed to the gradient of the sum of losses if asked for,
            and to nothing of use if not.
        bias: (V,) in float32.
        targets: The right words (R,): columns, or, where ids are given, ids.
        ids: Of every column (V,) its word, where the columns are a sample; a column that is a row's
            own target does not count there.
        own: With ids, the logit (R,) of each row's target, bias included, in float32.
        gradient: Whether gradients are wanted.

    Returns:
        Losses (R,) in float32, and with ids the gradient (R,) of own.
    """
    # in the logits' own place, where nobody needs them any more
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
