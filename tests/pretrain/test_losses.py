"""Full, sampled and adaptive softmax in training."""

import numpy as np
import pytest
import torch

from elmokit.nn import FullSoftmax
from elmokit.pretrain.data.negatives import Negatives
from elmokit.pretrain.objective import losses


@pytest.fixture
def softmax():
    torch.manual_seed(0)
    made = FullSoftmax(50, 8)
    made.bias.data.normal_()
    return made, torch.randn(33, 8, requires_grad=True), torch.randint(0, 50, (33,))


def compare(loss, expected, leaves):
    torch.testing.assert_close(loss, expected)
    found = torch.autograd.grad(2 * loss, leaves)
    for a, b in zip(found, torch.autograd.grad(2 * expected, leaves), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("held", [1, 120, 1 << 20])
def test_full_softmax(softmax, held, monkeypatch):
    monkeypatch.setitem(losses._LOGITS, "cpu", held)
    made, h, targets = softmax
    logits = h @ made.weight.t() + made.bias
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    compare(losses.full_loss(made, h, targets), expected, [h, made.weight, made.bias])


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_rows_added_for_even_products_change_nothing(softmax, kind, monkeypatch):
    monkeypatch.setitem(losses._EVEN, "cpu", 64)
    if kind == "full":
        test_full_softmax(softmax, 120, monkeypatch)
    else:
        test_sampled_softmax(softmax, 120, monkeypatch)


@pytest.mark.parametrize("held", [1, 120, 1 << 20])
def test_sampled_softmax(softmax, held, monkeypatch):
    monkeypatch.setitem(losses._LOGITS, "cpu", held)
    made, h, targets = softmax
    drawn, tries = Negatives(50, 20).draw(np.random.default_rng(0))
    negatives, log_q = torch.from_numpy(drawn), losses.log_expected(50, tries, h.device)
    assert (targets[:, None] == negatives).any()  # some must not count
    expected = h.new_zeros(())
    for row, target in zip(h, targets, strict=True):
        choice = [int(target), *(int(n) for n in negatives if n != target)]
        logits = made.weight[choice] @ row + made.bias[choice] - log_q[choice]
        expected = expected - torch.log_softmax(logits, 0)[0]
    loss = losses.sampled_loss(made, h, targets, negatives, log_q)
    compare(loss, expected, [h, made.weight, made.bias])


def test_adaptive_softmax(monkeypatch):
    monkeypatch.setitem(losses._LOGITS, "cpu", 200)
    torch.manual_seed(0)
    made = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 50, [10, 30], div_value=2.0)
    h, targets = torch.randn(33, 8, requires_grad=True), torch.randint(0, 50, (33,))
    expected = -made.log_prob(h)[torch.arange(33), targets].sum()
    compare(losses.adaptive_loss(made, h, targets), expected, [h, *made.parameters()])


def test_adaptive_softmax_under_autocast(monkeypatch):
    """GPU autocast computes log_softmax in float32 for any input; CPU autocast does not."""
    log_softmax = torch.nn.functional.log_softmax

    def as_on_a_gpu(x, *arguments, **keywords):
        x = x.float() if torch.is_autocast_enabled("cpu") else x
        return log_softmax(x, *arguments, **keywords)

    torch.manual_seed(0)
    made = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 50, [10, 30], div_value=2.0)
    h, targets = torch.randn(33, 8).bfloat16().requires_grad_(), torch.randint(0, 50, (33,))
    expected = losses.adaptive_loss(made, h.float(), targets)
    monkeypatch.setattr(torch.nn.functional, "log_softmax", as_on_a_gpu)
    with torch.autocast("cpu", torch.bfloat16):
        loss = losses.adaptive_loss(made, h, targets)
    compare(loss, expected, [h, *made.parameters()])


def test_negatives():
    draw = Negatives(1000, 100)
    seen, chance = np.zeros(1000), np.zeros(1000)
    for seed in range(400):
        drawn, tries = draw.draw(np.random.default_rng(seed))
        assert len(set(drawn.tolist())) == 100
        seen[drawn] += 1
        chance += losses.log_expected(1000, tries, torch.device("cpu")).exp().numpy()
    assert seen[0] > 390
    assert abs(seen[100:200].sum() / chance[100:200].sum() - 1) < 0.05
    assert abs(seen.sum() / chance.sum() - 1) < 0.02
