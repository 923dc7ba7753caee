"""Alternating LSTMs: which words an output sees, padding, and the highway."""

import pytest
import torch

from elmokit.tasks.heads import AlternatingLSTM, HighwayLSTM
from helpers.heads import LENGTHS, assert_padding_does_not_matter, assert_seeded, mask_of, overfit
from helpers.numbers import assert_close


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_padding(n_layers):
    torch.manual_seed(0)
    encoder = AlternatingLSTM(4, 5, n_layers)
    assert_padding_does_not_matter(encoder, torch.randn(len(LENGTHS), 7, 4))


def test_no_rows():
    assert AlternatingLSTM(4, 5)(torch.zeros(0, 3, 4), torch.zeros(0, 3).bool()).shape == (0, 3, 5)


@pytest.mark.parametrize("length", [4, 6])
def test_against_layers_one_by_one(length):
    """Every second layer reads the words of each row backward."""
    torch.manual_seed(0)
    encoder = AlternatingLSTM(4, 5, 3)
    x, lengths = torch.randn(2, 6, 4), [length, 6]
    found = encoder(x, mask_of(lengths))
    for row, n in enumerate(lengths):
        y = x[row : row + 1, :n]
        for k, layer in enumerate(encoder.layers):
            y = layer(y.flip(1)).flip(1) if k % 2 else layer(y)
        assert_close(found[row, :n].detach(), y[0].detach())


def test_the_gate_chooses_between_state_and_input():
    layer = HighwayLSTM(3, 2)
    x = torch.randn(1, 4, 3)
    state, carried = layer.lstm(x)[0], layer.highway(x)[..., 2:]
    with torch.no_grad():
        for bias, expected in ((50.0, state), (-50.0, carried)):
            layer.highway.weight[:2] = 0
            layer.highway.bias[:2] = bias
            assert_close(layer(x), expected.detach())


def test_seeds_and_learning():
    assert_seeded(lambda: AlternatingLSTM(3, 4, 2))
    torch.manual_seed(0)
    encoder, mask = AlternatingLSTM(1, 8, 2), mask_of([5, 3])
    x = torch.randn(2, 5, 1)
    # the first output needs the last word of its row, the last output the first word
    wanted = torch.stack([x[0, 4], x[1, 2], x[0, 0], x[1, 0]])

    def loss():
        y = encoder(x, mask)[..., :1]
        return (torch.stack([y[0, 0], y[1, 0], y[0, 4], y[1, 2]]) - wanted).square().mean()

    assert overfit(loss, encoder, steps=30) < 0.05
