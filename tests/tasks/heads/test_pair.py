"""Similarity as an expectation over a scale."""

import pytest
import torch

from elmokit.errors import InputError
from elmokit.tasks.heads import SiameseHead
from helpers.heads import assert_seeded, overfit
from helpers.numbers import assert_close


def test_by_hand():
    torch.manual_seed(0)
    head, u, v = SiameseHead(4, 3, 1, 5), torch.randn(2, 4), torch.randn(2, 4)
    scores = head(u, v)
    hidden = torch.sigmoid(head.hidden(torch.cat([(u - v).abs(), u * v], 1)))
    assert_close(scores.detach(), head.output(hidden).detach())
    assert torch.equal(scores, head(v, u))
    shares = scores.softmax(1)
    assert_close(head.expectation(scores).detach(), (shares @ torch.arange(1.0, 6)).detach())
    # Tai et al.: 2.75 is 0.25 at 2 and 0.75 at 3; 5 is all at 5
    wanted = torch.tensor([[0, 0.25, 0.75, 0, 0], [0, 0, 0, 0, 1]])
    expected = torch.nn.functional.kl_div(shares.log(), wanted, reduction="none").sum(1)
    assert_close(head.loss(scores, torch.tensor([2.75, 5])).detach(), expected.detach())


def test_the_loss_is_zero_where_the_expectation_is_right():
    head = SiameseHead(4, 3, 0, 5)
    scores = torch.tensor([[0, 0.5, 0.5, 0, 0, 0], [1, 0, 0, 0, 0, 0]]).log().clamp(min=-100)
    gold = torch.tensor([1.5, 0])
    assert_close(head.expectation(scores), gold)
    assert_close(head.loss(scores, gold), [0, 0])
    assert (head.loss(scores, gold + 0.1) > 0.001).all()
    scores = torch.randn(2, 6, requires_grad=True)
    head.loss(scores, gold).sum().backward()
    assert scores.grad.isfinite().all()


def test_rows_do_not_depend_on_each_other():
    torch.manual_seed(0)
    head, u, v = SiameseHead(4, 3, 0, 5), torch.randn(6, 4), torch.randn(6, 4)
    gold = 5 * torch.rand(6)
    scores = head(u, v)
    for row in range(6):
        alone = head(u[row : row + 1], v[row : row + 1])
        assert_close(alone.detach(), scores[row : row + 1].detach())
        loss = head.loss(alone, gold[row : row + 1])
        assert_close(loss.detach(), head.loss(scores, gold)[row : row + 1].detach())


def test_float64_and_half_precision():
    head = SiameseHead(4, 3, 0, 5)
    scores, gold = torch.randn(3, 6), torch.tensor([1.5, 0, 5])
    assert head.loss(scores.bfloat16(), gold).dtype == torch.float32
    assert head.expectation(scores.bfloat16()).dtype == torch.float32
    double = scores.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: head.loss(s, gold), (double,))
    assert torch.autograd.gradcheck(head.expectation, (double,))


def test_learns_eight_pairs():
    torch.manual_seed(0)
    head, u, v = SiameseHead(8, 32, 0, 5), torch.randn(8, 8), torch.randn(8, 8)
    gold = 5 * torch.rand(8)
    assert overfit(lambda: head.loss(head(u, v), gold).mean(), head, steps=80, rate=0.1) < 0.05
    assert_close(head.expectation(head(u, v)).detach(), gold, 0.1)
    assert_seeded(lambda: SiameseHead(8, 32, 0, 5))


def test_mistakes():
    with pytest.raises(InputError, match="most must be a whole number from 6, not 5"):
        SiameseHead(4, 3, 5, 5)
