"""ESIM."""

import torch
from torch import nn

from elmokit.tasks.heads import ESIM
from elmokit.tasks.heads.esim import attention, swapped
from helpers.heads import assert_seeded, mask_of, overfit
from helpers.numbers import assert_close

PAIRS = [[3, 7], [5, 1], [2, 0], [7, 7]]
"""Lengths of both sentences; one is empty."""


def test_it_computes_what_the_paper_says():
    """One pair, word by word."""
    torch.manual_seed(0)
    head = ESIM(5, 4, 3).eval()
    first, second = torch.randn(3, 5), torch.randn(6, 5)
    x = torch.zeros(2, 6, 5)
    x[0, :3], x[1] = first, second
    found = head(x, mask_of([3, 6]))[0]

    def encoded(module, sentence):
        return module(sentence[None], torch.ones(1, len(sentence), dtype=torch.bool))[0]

    a, b = encoded(head.encoder, first), encoded(head.encoder, second)
    vectors = []
    for own, other in ((a, b), (b, a)):
        rows = []
        for state in own:
            shares = torch.stack([state @ word for word in other]).softmax(0)
            seen = sum(share * word for share, word in zip(shares, other, strict=True))
            compared = torch.cat([state, seen, state - seen, state * seen])
            rows.append(torch.relu(head.projection(compared)))
        states = encoded(head.composition, torch.stack(rows))
        vectors += [states.mean(0), states.amax(0)]
    assert_close(found.detach(), head.output(torch.cat(vectors)).detach())


def test_padding_does_not_matter():
    torch.manual_seed(0)
    head = ESIM(5, 4, 3, dropout=0.5, second_dim=2).eval()
    mask = mask_of([length for pair in PAIRS for length in pair], 9)
    x, second = torch.randn(8, 9, 5), torch.randn(8, 9, 2)
    second = second * mask[..., None]  # as the input layer gives it
    together = head(x, mask, second).detach()
    for row, lengths in enumerate(PAIRS):
        two, longest = slice(2 * row, 2 * row + 2), max(lengths)
        alone = head(x[two, :longest], mask[two, :longest], second[two, :longest])
        assert_close(alone.detach()[0], together[row])


def test_attention():
    torch.manual_seed(0)
    x, other = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    weights = attention(x, other, mask_of([5, 2]))
    assert_close(weights[0], (x[0] @ other[0].T).softmax(1))
    assert_close(weights.sum(2), torch.ones(2, 4))
    assert not weights[1, :, 2:].any()
    rows = torch.arange(6).view(6, 1)
    assert swapped(rows).flatten().tolist() == [1, 0, 3, 2, 5, 4]


def test_learns_the_order_of_a_pair():
    """The same two sentences, in both orders."""
    torch.manual_seed(0)
    head, mask = ESIM(6, 8, 2), mask_of([4, 3, 3, 4])
    first, second = torch.randn(2, 4, 6)
    x = torch.stack([first, second, second, first])
    loss = overfit(
        lambda: nn.functional.cross_entropy(head(x, mask), torch.arange(2)), head, rate=0.01
    )
    assert loss < 0.05
    assert_seeded(lambda: ESIM(6, 8, 2))


def test_autocast():
    torch.manual_seed(0)
    head, mask = ESIM(5, 4, 3), mask_of([4, 2, 3, 3])
    x = torch.randn(*mask.shape, 5)
    expected = head(x, mask)
    with torch.autocast("cpu", torch.bfloat16):
        found = head(x, mask)
    found.sum().backward()
    assert_close(found.float().detach(), expected.detach(), 0.03)
