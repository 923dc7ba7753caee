"""The biattentive classification network."""

import pytest
import torch
from torch import nn

from elmokit.errors import InputError
from elmokit.tasks.heads import BiattentiveClassifier
from elmokit.tasks.heads.biattentive import Maxout, attend_to_itself
from helpers.heads import LENGTHS, assert_padding_does_not_matter, assert_seeded, mask_of, overfit
from helpers.numbers import assert_close


@pytest.mark.parametrize("output", ["relu", "maxout"])
def test_padding_does_not_matter(output):
    torch.manual_seed(0)
    head = BiattentiveClassifier(5, 4, 3, dropout=0.5, second_dim=2, output=output).eval()
    x, second = torch.randn(len(LENGTHS), 9, 5), torch.randn(len(LENGTHS), 9, 2)
    assert_padding_does_not_matter(lambda x, s, mask: head(x, mask, s), x, second)


def test_padding_does_not_matter_for_training_with_relu():
    """The loss and its gradients of two batches add up to those of both in one."""
    torch.manual_seed(0)
    head, mask = BiattentiveClassifier(5, 4, 3), mask_of(LENGTHS)
    x = torch.randn(*mask.shape, 5)
    head(x, mask).square().sum().backward()
    together = [p.grad.clone() for p in head.parameters()]
    head.zero_grad()
    for row, n in enumerate(LENGTHS):
        head(x[row : row + 1, :n], mask[row : row + 1, :n]).square().sum().backward()
    for parameter, expected in zip(head.parameters(), together, strict=True):
        assert_close(parameter.grad, expected)


def test_attention_to_itself():
    torch.manual_seed(0)
    x, mask = torch.randn(2, 4, 3), mask_of([4, 2])
    attended = attend_to_itself(x, mask)
    assert_close(attended[0], (x[0] @ x[0].T).softmax(1) @ x[0])
    assert_close(attended[1, :2], (x[1, :2] @ x[1, :2].T).softmax(1) @ x[1, :2])


def test_widths_are_those_of_the_paper():
    with torch.device("meta"):
        relu = BiattentiveClassifier(1324, 300, 5, second_dim=1024)
        maxout = BiattentiveClassifier(1324, 300, 5, output="maxout")
    assert relu.integrator.layers[0][0].input_size == 1800
    shapes = [(m.in_features, m.out_features) for m in relu.output if isinstance(m, nn.Linear)]
    assert shapes == [(6496, 1200), (1200, 600), (600, 5)]
    layers = [m.linear for m in maxout.output if isinstance(m, Maxout)]
    shapes = [(m.in_features, m.out_features // 4) for m in layers]
    assert shapes == [(2400, 1200), (1200, 600), (600, 5)]


def test_maxout():
    torch.manual_seed(0)
    layer, x = Maxout(3, 2), torch.randn(5, 3)
    assert_close(layer(x).detach(), layer.linear(x).view(5, 2, 4).amax(2).detach())


@pytest.mark.parametrize("output", ["relu", "maxout"])
def test_learns_eight_sentences(output):
    torch.manual_seed(0)
    head, mask = BiattentiveClassifier(6, 8, 8, output=output), mask_of([4, 6, 2, 3, 6, 1, 5, 2])
    x = torch.randn(8, 6, 6)

    def loss():
        return nn.functional.cross_entropy(head(x, mask), torch.arange(8))

    assert overfit(loss, head, rate=0.01) < 0.05
    assert_seeded(lambda: BiattentiveClassifier(6, 8, 8, output=output))


def test_autocast():
    torch.manual_seed(0)
    head, mask = BiattentiveClassifier(5, 4, 3, second_dim=2), mask_of(LENGTHS)
    x, second = torch.randn(*mask.shape, 5), torch.randn(*mask.shape, 2)
    expected = head(x, mask, second)
    with torch.autocast("cpu", torch.bfloat16):
        found = head(x, mask, second)
    found.sum().backward()
    assert_close(found.float().detach(), expected.detach(), 0.03)


def test_a_batch_of_one_in_training():
    head = BiattentiveClassifier(6, 8, 3, output="maxout")
    head(torch.randn(1, 4, 6), mask_of([4])).sum().backward()
    assert head.feed_forward.weight.grad.any()


def test_mistakes():
    head, x, mask = BiattentiveClassifier(6, 8, 3, second_dim=2), torch.zeros(1, 4, 6), mask_of([4])
    with pytest.raises(InputError, match="a second input of width 2, not none"):
        head(x, mask)
    with pytest.raises(InputError, match="a second input of width 2, not one of 6"):
        head(x, mask, x)
    with pytest.raises(InputError, match="output must be relu or maxout, not 'linear'"):
        BiattentiveClassifier(6, 8, 3, output="linear")
