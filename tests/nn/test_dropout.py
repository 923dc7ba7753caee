"""Dropout on a CPU: the same distribution and gradient as PyTorch's."""

import pytest
import torch
from torch.nn import functional as F

from elmokit.nn.dropout import Dropout, drop


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_share_and_scale(rate, dtype):
    torch.manual_seed(0)
    n = 400_000
    dropped = drop(torch.ones(4, n // 4, dtype=dtype), rate)
    assert dropped.dtype is dtype
    scale = torch.tensor(1 / (1 - rate), dtype=torch.float32).to(dtype)
    assert set(dropped.unique().tolist()) == {0.0, scale.item()}
    share = (dropped == 0).double().mean().item()
    assert abs(share - rate) < 5 * (rate * (1 - rate) / n) ** 0.5  # five standard deviations


def test_defaults_of_pytorch_do_not_matter():
    x = torch.ones(3, 4)
    with torch.device("meta"):
        assert drop(x, 0.5).device.type == "cpu"
    torch.manual_seed(0)
    expected = drop(x, 0.3)
    torch.set_default_dtype(torch.bfloat16)
    try:
        torch.manual_seed(0)
        assert torch.equal(drop(x, 0.3), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_every_value_is_dropped_on_its_own():
    torch.manual_seed(0)
    zeros = torch.stack([drop(torch.ones(40, 30), 0.5) == 0 for _ in range(400)]).double()
    assert zeros.mean(0).sub(0.5).abs().max() < 0.16  # over 6 standard deviations
    # neighbours in a row and in a column agree as often as they differ
    for other in (zeros.roll(1, 1), zeros.roll(1, 2)):
        assert (zeros == other).double().mean().sub(0.5).abs() < 0.01


def test_the_gradient_passes_where_the_value_does():
    torch.manual_seed(0)
    x = torch.randn(50, 20, requires_grad=True)
    dropped = drop(x, 0.4)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    expected = torch.where(dropped == 0, 0.0, 1 / 0.6)
    torch.testing.assert_close(gradient, expected)
    torch.testing.assert_close(dropped, x * expected)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_ends_of_the_scale_are_those_of_pytorch(rate):
    x = torch.randn(3, 4)
    assert torch.equal(drop(x, rate), F.dropout(x, rate))


def test_the_module_drops_in_training_only():
    module, x = Dropout(0.5), torch.ones(100, 10)
    assert 0 < int((module(x) == 0).sum()) < 1000
    assert module.eval()(x) is x
    torch.manual_seed(1)
    first = module.train()(x)
    torch.manual_seed(1)
    assert torch.equal(module(x), first)
