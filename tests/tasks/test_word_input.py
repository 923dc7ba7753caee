"""[static; ELMo]: widths, places, and independence of padding."""

import numpy as np
import pytest
import torch

from elmokit.tasks.frozen_layers import FrozenLayers
from elmokit.tasks.task_settings import InputSettings
from elmokit.tasks.word_batches import Batcher, Prepared, by_length, shuffled
from elmokit.tasks.word_input import StaticTable, WordInput

TEXTS = [[["The", "cat", "sat"]], [["a"], ["dog", "ran"], []], [[]]]
STATIC = StaticTable(["the", "cat"], np.arange(4.0).reshape(2, 2))


def batch_of(tiny, settings, texts=TEXTS, static=None):
    layer = WordInput(settings, tiny.n_layers, tiny.dim, static)
    layer.eval()
    with FrozenLayers(tiny, layer.layers) as frozen:
        items = [Prepared(None, [text]) for text in texts]
        return layer, Batcher(layer, frozen, None, torch.device("cpu")).make(items)


@pytest.mark.parametrize(
    ("settings", "static", "input_dim", "output_dim"),
    [
        ({}, None, 16, 0),
        ({"at": "output", "vectors": "token"}, None, 16, 16),
        ({"at": "both"}, STATIC, 18, 16),
        ({"vectors": "token", "layers": "2"}, None, 32, 0),
        ({"vectors": "x.txt", "layers": "none"}, STATIC, 2, 0),
        ({"layers": "top"}, None, 16, 0),
    ],
)
def test_widths(tiny, settings, static, input_dim, output_dim):
    layer, batch = batch_of(tiny, InputSettings(**settings), static=static)
    x, after = layer(batch)
    assert (layer.input_dim, layer.output_dim) == (input_dim, output_dim)
    assert x.shape == (3, 3, input_dim)
    assert (after is None) == (output_dim == 0)
    assert (x[~batch.mask] == 0).all()


def normalised(vectors):
    """Vectors with mean 0 and variance 1, computed in another way than by the library."""
    exact = vectors.astype(np.float64)
    return (exact - exact.mean(-1, keepdims=True)) / exact.std(-1, keepdims=True)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_the_mix_of_layers(tiny, layer_norm):
    layer, batch = batch_of(tiny, InputSettings(layer_norm=layer_norm))
    weights = torch.tensor([0.3, -1.0, 2.0])
    with torch.no_grad():
        layer.mixes["input"].weights.copy_(weights)
        layer.mixes["input"].gamma.fill_(1.5)
    x, _ = layer(batch)
    layers = tiny.encode([["The", "cat", "sat"]], "all")[0]
    layers = torch.from_numpy(normalised(layers) if layer_norm else layers).float()
    expected = 1.5 * (torch.softmax(weights, 0)[:, None, None] * layers).sum(0)
    torch.testing.assert_close(x[0], expected, atol=2e-2, rtol=0)  # kept in float16
    *shares, gamma = layer.shares()["input"]
    assert gamma == 1.5
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("dropped", ["dropout", "static_dropout"])
def test_static_vectors_and_elmo_are_dropped_apart(tiny, dropped):
    settings = InputSettings(**{"dropout": 0.0, "static_dropout": 0.0, dropped: 0.5})
    layer, batch = batch_of(tiny, settings, static=STATIC)
    full, _ = layer.eval()(batch)
    torch.manual_seed(0)
    seen = torch.stack([layer.train()(batch)[0] for _ in range(5)])
    kept = ((seen == full) | (full == 0)).all(0)
    static, elmo = kept[..., :2][batch.mask], kept[..., 2:][batch.mask]
    assert static.all() == (dropped == "dropout")
    assert elmo.all() == (dropped == "static_dropout")


@pytest.mark.parametrize("dropped", ["dropout", "static_dropout"])
def test_the_token_layer_is_dropped_like_elmo(tiny, dropped):
    changes = {"dropout": 0.0, "static_dropout": 0.0, dropped: 0.5}
    layer, batch = batch_of(tiny, InputSettings(vectors="token", layers="none", **changes))
    full, _ = layer.eval()(batch)
    torch.manual_seed(0)
    seen, _ = layer.train()(batch)
    assert torch.equal(seen, full) == (dropped == "static_dropout")


def test_a_text_has_the_vectors_of_its_sentences(tiny):
    """Sentences of a text follow one another, but each is read alone."""
    layer, batch = batch_of(tiny, InputSettings(layers="top", layer_norm=False))
    x, _ = layer(batch)
    dog = torch.from_numpy(tiny.encode([["dog", "ran"]], "top")[0])
    torch.testing.assert_close(x[1, 1:3], dog, atol=2e-2, rtol=0)


def test_the_token_layer_is_normalised_like_elmo(tiny):
    layer, batch = batch_of(tiny, InputSettings(vectors="token", layers="none"))
    x, _ = layer(batch)
    expected = normalised(tiny.encode([["The", "cat", "sat"]], 0)[0])
    torch.testing.assert_close(x[0], torch.from_numpy(expected).float(), atol=2e-2, rtol=0)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_padding_changes_nothing(tiny, layer_norm):
    settings = InputSettings(at="both", vectors="token", layer_norm=layer_norm)
    layer, together = batch_of(tiny, settings)
    x, after = layer(together)
    for number, text in enumerate(TEXTS[:2]):
        _, alone = batch_of(tiny, settings, [text])
        y, z = layer(alone)
        torch.testing.assert_close(x[number, : y.shape[1]], y[0], atol=1e-3, rtol=0)
        torch.testing.assert_close(after[number, : y.shape[1]], z[0], atol=1e-3, rtol=0)


def test_static_vectors_by_lower_case():
    assert STATIC.rows(["The", "cat", "Dog"]) == [1, 2, 0]
    assert STATIC(torch.tensor([[1, 0]])).tolist() == [[[0.0, 1.0], [0.0, 0.0]]]


def test_every_example_once_per_epoch():
    lengths = [3, 1, 7, 2, 2, 9, 4]
    examples = list("abcdefg")
    epochs = [shuffled(examples, lengths, 3, seed=1, epoch=e) for e in range(2)]
    for batches in epochs:
        assert sorted(x for batch in batches for x in batch) == examples
    assert epochs[0] != epochs[1]
    assert shuffled(examples, lengths, 3, 1, 0) == epochs[0]
    assert list(by_length(lengths, 4)) == [[5, 2, 6, 0], [3, 4, 1]]
