"""Pooling against calculations by hand."""

import pytest
import torch
from torch import nn

from elmokit.errors import InputError
from elmokit.tasks.heads import AttentionPooling, SentencePooling
from helpers.heads import LENGTHS, assert_padding_does_not_matter, assert_seeded, mask_of, overfit
from helpers.numbers import assert_close

KINDS = ["attention", "max", "mean", "min", "last"]


def test_pooling_by_hand():
    torch.manual_seed(0)
    pooling, x, mask = SentencePooling(6, KINDS), torch.randn(3, 5, 6), mask_of([2, 5, 0])
    assert pooling.output_dim == 30
    pooled = pooling(x, mask).detach()
    for row, n in ((0, 2), (1, 5)):
        tokens = x[row, :n]
        query = pooling.attention.query
        weights = (tokens @ query.weight[0] + query.bias).softmax(0)
        last = torch.cat([tokens[-1, :3], tokens[0, 3:]])
        expected = [weights @ tokens, tokens.amax(0), tokens.mean(0), tokens.amin(0), last]
        assert_close(pooled[row], torch.cat(expected).detach())
    assert not pooled[2].any()
    assert not pooling(x[:, :0], mask[:, :0]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_does_not_matter(kind):
    torch.manual_seed(0)
    pooling = SentencePooling(4, [kind])
    assert_padding_does_not_matter(pooling, torch.randn(len(LENGTHS), 9, 4))


def test_attention():
    torch.manual_seed(0)
    pooling, x = AttentionPooling(4), 100 * torch.randn(len(LENGTHS), 9, 4)
    assert_padding_does_not_matter(pooling, x)
    weights = pooling.weights(x, mask_of(LENGTHS, 9)).detach()
    assert_close(weights.sum(1), [float(n > 0) for n in LENGTHS])
    assert not weights[~mask_of(LENGTHS, 9)].any()
    assert_seeded(lambda: AttentionPooling(4))


def test_gradients_with_empty_rows_are_finite():
    pooling, mask = SentencePooling(4, KINDS), mask_of(LENGTHS, 9)
    x = torch.randn(*mask.shape, 4, requires_grad=True)
    pooling(x, mask).square().sum().backward()
    assert x.grad.isfinite().all()
    assert not x.grad[~mask].any()


def test_learns_eight_sentences():
    torch.manual_seed(0)
    pooling, mask = SentencePooling(6, KINDS), mask_of([4, 6, 2, 3, 6, 1, 5, 2])
    output, x = nn.Linear(pooling.output_dim, 8), torch.randn(8, 6, 6)

    def loss():
        return nn.functional.cross_entropy(output(pooling(x, mask)), torch.arange(8))

    assert overfit(loss, pooling, output) < 0.05


def test_mistakes():
    with pytest.raises(InputError, match="each of kinds must be attention, max, mean, min or last"):
        SentencePooling(4, ["sum"])
    with pytest.raises(InputError, match="kinds must be at least one way to pool"):
        SentencePooling(4, [])
