"""Relations between two entities."""

import torch
from torch import nn

from elmokit.tasks.heads import EntityAttention
from elmokit.tasks.heads.entity_attention import between
from helpers.heads import assert_padding_does_not_matter, assert_seeded, mask_of, overfit
from helpers.numbers import assert_close

LENGTHS = [7, 2, 5, 1, 0]
FIRST = [(0, 2), (1, 2), (4, 5), (0, 1), (0, 0)]
SECOND = [(4, 5), (0, 1), (0, 2), (0, 1), (0, 0)]


def spans(pairs, time):
    """True (B, T) from the start to the end of each pair."""
    positions = torch.arange(time)
    return torch.stack([(start <= positions) & (positions < end) for start, end in pairs])


def test_between():
    found = between(spans(FIRST, 9), spans(SECOND, 9))
    assert torch.equal(found, spans([(2, 4), (0, 0), (2, 4), (0, 0), (0, 0)], 9))
    nested = between(spans([(1, 6), (1, 3)], 9), spans([(2, 3), (0, 0)], 9))
    assert not nested.any()


def test_by_hand():
    torch.manual_seed(0)
    head, x = EntityAttention(4, 5, 3), torch.randn(len(LENGTHS), 9, 4)
    found = head(x, mask_of(LENGTHS, 9), spans(FIRST, 9), spans(SECOND, 9))
    for row, amid in ((0, x[0, 2:4].amax(0)), (1, torch.zeros(4)), (2, x[2, 2:4].amax(0))):
        tokens = x[row, : LENGTHS[row]]
        entities = torch.cat([x[row, slice(*side[row])].mean(0) for side in (FIRST, SECOND)])
        matched = torch.tanh(head.key(tokens) + head.query(entities))
        seen = (matched @ head.weight.weight[0]).softmax(0) @ tokens
        expected = head.output(torch.relu(head.hidden(torch.cat([entities, seen, amid]))))
        assert_close(found[row].detach(), expected.detach())


def test_padding_does_not_matter():
    torch.manual_seed(0)
    head, x = EntityAttention(4, 5, 3, dropout=0.5).eval(), torch.randn(len(LENGTHS), 9, 4)

    def run(x, mask):
        time = mask.shape[1]
        rows = range(len(x)) if len(x) > 1 else [LENGTHS.index(int(mask.sum()))]
        first, second = (spans([side[row] for row in rows], time) for side in (FIRST, SECOND))
        return head(x, mask, first, second)

    assert_padding_does_not_matter(run, x, lengths=LENGTHS)


def test_gradients_are_finite():
    head, mask = EntityAttention(4, 5, 3), mask_of(LENGTHS, 9)
    x = torch.randn(*mask.shape, 4, requires_grad=True)
    head(x, mask, spans(FIRST, 9), spans(SECOND, 9)).square().sum().backward()
    assert x.grad.isfinite().all()
    assert not x.grad[~mask].any()


def test_autocast():
    torch.manual_seed(0)
    head, mask = EntityAttention(4, 5, 3), mask_of(LENGTHS, 9)
    x = torch.randn(*mask.shape, 4)
    arguments = mask, spans(FIRST, 9), spans(SECOND, 9)
    expected = head(x, *arguments)
    with torch.autocast("cpu", torch.bfloat16):
        found = head(x.bfloat16(), *arguments)
    found.sum().backward()
    assert_close(found.float().detach(), expected.detach(), 0.03)


def test_learns_eight_sentences():
    torch.manual_seed(0)
    head, x = EntityAttention(6, 16, 8), torch.randn(8, 7, 6)
    mask, first, second = mask_of([7] * 8), spans([(0, 2)] * 8, 7), spans([(4, 5)] * 8, 7)

    def loss():
        return nn.functional.cross_entropy(head(x, mask, first, second), torch.arange(8))

    assert overfit(loss, head) < 0.05
    assert_seeded(lambda: EntityAttention(6, 16, 8))
