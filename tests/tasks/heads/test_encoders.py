"""The biLSTM and the character CNN."""

import pytest
import torch
from torch import nn

from elmokit.tasks.heads import BiGRUEncoder, BiLSTMEncoder, CharCNN, LockedDropout
from helpers.heads import LENGTHS, assert_padding_does_not_matter, assert_seeded, mask_of, overfit
from helpers.numbers import assert_close


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("kind", [BiLSTMEncoder, BiGRUEncoder])
def test_padding_does_not_matter(kind, n_layers):
    torch.manual_seed(0)
    encoder, x = kind(4, 3, n_layers, dropout=0.5).eval(), torch.randn(len(LENGTHS), 9, 4)
    assert_padding_does_not_matter(encoder, x)


def test_the_bilstm_is_that_of_pytorch():
    torch.manual_seed(0)
    encoder, lstm = BiLSTMEncoder(4, 3, 2), nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True)
    for k, layer in enumerate(encoder.layers):
        for one, end in zip(layer, ("", "_reverse"), strict=True):
            for name, weight in one.named_parameters():
                getattr(lstm, name.replace("_l0", f"_l{k}{end}")).data.copy_(weight)
    x = torch.randn(2, 5, 4)
    assert_close(encoder(x, mask_of([5, 5])).detach(), lstm(x)[0].detach())
    assert encoder.output_dim == 6


def test_gradients_of_empty_rows_are_zero():
    encoder, x = BiLSTMEncoder(4, 3, 2), torch.randn(3, 4, 4, requires_grad=True)
    mask = mask_of([2, 0, 4])
    encoder(x, mask).square().sum().backward()
    assert x.grad[mask].any()
    assert not x.grad[~mask].any()
    for shape in ((0, 4), (2, 0)):
        assert encoder(torch.zeros(*shape, 4), torch.zeros(shape).bool()).shape == (*shape, 6)


def test_dropout_is_locked_and_between_layers():
    torch.manual_seed(0)
    dropped = LockedDropout(0.5)(torch.ones(3, 10, 200))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))  # at all tokens
    assert not torch.equal(dropped[0], dropped[1])  # but not in all sentences
    assert 0.4 < dropped.mean() / 2 < 0.6
    assert torch.equal(LockedDropout(0.5).eval()(dropped), dropped)
    x, mask = torch.randn(2, 5, 4), mask_of([5, 3])
    one, two = BiLSTMEncoder(4, 3, 1, dropout=0.5), BiLSTMEncoder(4, 3, 2, dropout=0.5)
    assert torch.equal(one(x, mask), one(x, mask))
    assert not torch.equal(two(x, mask), two(x, mask))


def test_the_bilstm_under_autocast():
    torch.manual_seed(0)
    encoder, x, mask = BiLSTMEncoder(4, 3, 2), torch.randn(2, 5, 4), mask_of([5, 3])
    expected = encoder(x, mask)
    with torch.autocast("cpu", torch.bfloat16):
        found = encoder(x, mask)
    assert_close(found.float().detach(), expected.detach(), 0.03)


def test_the_bilstm_learns_eight_sentences():
    torch.manual_seed(0)
    encoder, output, mask = BiLSTMEncoder(8, 16, 2), nn.Linear(32, 5), mask_of([*LENGTHS, 4, 2])
    x, gold = torch.randn(*mask.shape, 8), torch.randint(5, mask.shape)

    def loss():
        return nn.functional.cross_entropy(output(encoder(x, mask))[mask], gold[mask])

    assert overfit(loss, encoder, output) < 0.05


def test_weights_come_from_the_seed():
    assert_seeded(lambda: BiLSTMEncoder(4, 3, 2))
    assert_seeded(lambda: CharCNN(10))
    ahead, back = BiLSTMEncoder(4, 3).layers[0]
    assert ahead.bias_ih_l0.tolist() == [0] * 3 + [1] * 3 + [0] * 6
    gate = back.weight_hh_l0[3:6]
    assert_close((gate @ gate.T).detach(), torch.eye(3))


def words(*rows):
    """Character ids (1, T, C)."""
    longest = max(map(len, rows))
    return torch.tensor([[row + [0] * (longest - len(row)) for row in rows]])


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_the_character_cnn_agrees_with_a_convolution(width):
    torch.manual_seed(0)
    cnn = CharCNN(9, character_dim=4, filters=6, width=width)
    nn.init.normal_(cnn.convolution.bias)
    weight = cnn.convolution.weight.view(6, 4, width)
    ids = words([3, 1, 9, 2], [5], [7, 7])
    for k, length in enumerate([4, 1, 2]):
        characters = cnn.embedding(ids[0, k, :length]).T[None]  # (1, dim, C)
        maps = nn.functional.conv1d(characters, weight, cnn.convolution.bias, padding=width - 1)
        assert_close(cnn(ids)[0, k].detach(), maps.amax(2)[0].tanh().detach())


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_padding_does_not_matter_for_the_character_cnn(width):
    torch.manual_seed(0)
    cnn = CharCNN(9, 4, 6, width)
    nn.init.normal_(cnn.convolution.bias)
    short, long = words([1, 2], [3], []), words([1, 2], [3], [], [4] * 20)
    assert_close(cnn(long)[:, :3].detach(), cnn(short).detach())
    assert not cnn(short)[0, 2].any()
    assert cnn(torch.zeros(2, 0, 3, dtype=torch.long)).shape == (2, 0, 6)
    cnn(long).sum().backward()
    assert not cnn.embedding.weight.grad[0].any()


def test_the_character_cnn_learns_eight_words():
    torch.manual_seed(0)
    cnn, output = CharCNN(20), nn.Linear(30, 8)
    ids = torch.randint(1, 21, (2, 4, 6))

    def loss():
        return nn.functional.cross_entropy(output(cnn(ids)).flatten(0, 1), torch.arange(8))

    assert overfit(loss, cnn, output) < 0.05
