"""The softmax on a CPU, a block of logits at a time, against all logits in float64."""

import pytest
import torch

from elmokit.kernels.softmax_torch import log_sums
from elmokit.nn import FullSoftmax


def made(n: int, vocabulary_size: int, scale: float) -> tuple[FullSoftmax, torch.Tensor]:
    torch.manual_seed(n)
    softmax = FullSoftmax(vocabulary_size, 12)
    torch.nn.init.normal_(softmax.bias, 0, scale)
    return softmax, scale * torch.randn(n, 12)


@pytest.mark.parametrize("n", [0, 1, 1024, 1500])
@pytest.mark.parametrize("vocabulary_size", [1, 7, 2048, 5000])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_blocks_of_logits_give_the_same_sums(n, vocabulary_size, scale):
    softmax, h = made(n, vocabulary_size, scale)
    with torch.no_grad():
        found = log_sums(h, softmax.weight, softmax.bias)
        logits = h.double() @ softmax.weight.double().t() + softmax.bias.double()
    torch.testing.assert_close(found.double(), logits.logsumexp(1), rtol=1e-5, atol=1e-5)


def test_words_without_probability():
    softmax, h = made(3, 5000, 1.0)
    with torch.no_grad():
        softmax.bias[:2500] = -torch.inf
        found = log_sums(h, softmax.weight, softmax.bias)
        expected = (h @ softmax.weight.t() + softmax.bias).logsumexp(1)
        torch.testing.assert_close(found, expected)
        softmax.bias.fill_(-torch.inf)
        assert (log_sums(h, softmax.weight, softmax.bias) == -torch.inf).all()


def test_scores_are_the_same_with_and_without_gradients():
    softmax, h = made(1100, 3000, 2.0)
    targets = torch.randint(0, 3000, (1100,))
    learning = softmax.score(h, targets)
    assert learning.requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(softmax.score(h, targets), learning, rtol=1e-5, atol=1e-5)
