"""The best sequence of IOB2 tags by Viterbi's algorithm, in linear time of the number of tags."""

from __future__ import annotations

import torch
from torch import Tensor

FORBIDDEN = -1e30
"""Score of a tag that must not be chosen: it absorbs every real score, and can be added up."""


@torch.no_grad()
def best_bio(scores: Tensor, mask: Tensor) -> Tensor:
    """The tags (B, T) with the highest sum of scores in which every I- continues a span.

    IOB2 has one rule: an I- comes after the B- or the I- of its type. So a step compares, for an
    I-, two tags before it, and for all others only the best of all tags: K steps instead of K².

    Args:
        scores: Scores (B, T, K) of the tags O, B-X, I-X, B-Y, I-Y, … in this order.
        mask: True (B, T) at tokens, which are at the start of each row; tags are 0 elsewhere.
    """
    n, time, n_tags = scores.shape
    if not n or not time:
        return mask.long()
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    begin, inside = torch.arange(1, n_tags, 2, device=mask.device).expand(n, -1), slice(2, None, 2)
    stay = torch.arange(n_tags, device=mask.device).expand(n, -1)
    best = scores[:, 0].clone()  # (B, K), of the best sequence so far that ends in each tag
    best[:, inside] = FORBIDDEN
    origins = []  # at each token, the best tag before each tag
    for emitted, real in zip(scores.unbind(1)[1:], mask[..., None].unbind(1)[1:], strict=True):
        top, tag = best.max(1, keepdim=True)
        before, origin = top.repeat(1, n_tags), tag.repeat(1, n_tags)
        continued = best[:, inside] > best[:, 1::2]
        before[:, inside] = torch.where(continued, best[:, inside], best[:, 1::2])
        origin[:, inside] = begin + continued.long()
        best = torch.where(real, before + emitted, best)
        origins.append(torch.where(real, origin, stay))
    path = [best.argmax(1, keepdim=True)]
    for origin in reversed(origins):  # the padding stays at the last tag
        path.append(origin.gather(1, path[-1]))
    return torch.cat(path[::-1], 1).masked_fill(~mask, 0)
