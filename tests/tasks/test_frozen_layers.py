"""Layers on disk are those of the model."""

import random

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.tasks.frozen_layers import FrozenLayers

SENTENCES = [["the", "cat", "sat"], ["a", "dog"], ["the", "cat", "sat"], [], ["x"]]


@pytest.mark.parametrize("limit", [0, 3 * 16 * 2, 1 << 30])
@pytest.mark.parametrize("layers", [[0, 1, 2], [2], [0, 2]])
def test_kept_or_computed(tiny, tmp_path, limit, layers):
    """Whether a sentence fits the limit or not, its vectors are the same."""
    said = []
    with FrozenLayers(tiny, layers, limit, tmp_path) as frozen:
        frozen.keep(SENTENCES, said.append)
        found = frozen.of(SENTENCES)
        expected = tiny.encode(SENTENCES, layers, dtype=np.float16)
        for ours, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                ours.astype(np.float32), right.transpose(1, 0, 2).astype(np.float32), atol=2e-3
            )
    (line,) = said
    assert ("computed in every epoch" in line) == (limit < 1 << 30)
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_kept_on_a_gpu(tiny, monkeypatch, room):
    """Layers that fit are kept as a tensor of the device; batches are the same."""
    monkeypatch.setattr("elmokit.tasks.frozen_layers._gpu_room", lambda device: room)
    monkeypatch.setattr("elmokit.tasks.frozen_layers._BLOCK", 3)
    said, unknown = [], ["not", "kept"]
    with FrozenLayers(tiny, [0, 2]) as frozen:
        frozen.keep(SENTENCES, said.append)
        assert ("of the GPU's memory" in said[0]) == bool(room)
        for asked in (SENTENCES, [["x"], ["a", "dog"]], [unknown, ["x"]], []):
            known = [sentence for sentence in asked if sentence]
            expected = [np.zeros((0, 2, tiny.dim), np.float16)]
            for array in tiny.encode(known, [0, 2], dtype=np.float16):
                expected.append(array.transpose(1, 0, 2))
            np.testing.assert_allclose(
                frozen.joined(known).float().numpy(),
                np.concatenate(expected).astype(np.float32),
                atol=2e-3,
            )


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_more_sentences_later(tiny, monkeypatch, room):
    """What was kept stays; only new sentences are computed."""
    monkeypatch.setattr("elmokit.tasks.frozen_layers._gpu_room", lambda device: room)
    monkeypatch.setattr("elmokit.tasks.frozen_layers._BLOCK", 3)
    later = [["the", "cat", "sat"], ["later"], ["and", "later", "still"]]
    with FrozenLayers(tiny, [0, 2], 1 << 30) as frozen:
        frozen.keep(SENTENCES)
        earlier = np.concatenate(frozen.of(SENTENCES))
        said = []
        frozen.keep(later, said.append)
        assert said[0].startswith("ELMo's layers of 4 tokens")
        monkeypatch.setattr(frozen, "_computed", None)  # everything is there
        np.testing.assert_array_equal(np.concatenate(frozen.of(SENTENCES)), earlier)
        found = frozen.joined([*later, ["x"]]).float().numpy()
        frozen.keep(later, said.append)
    assert len(said) == 1
    expected = tiny.encode([*later, ["x"]], [0, 2], dtype=np.float32)
    right = np.concatenate([array.transpose(1, 0, 2) for array in expected])
    np.testing.assert_allclose(found, right, atol=2e-3)


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_stopped_while_more_are_computed(tiny, monkeypatch, room):
    """Half of the new layers are not used, and the earlier ones stay."""

    def stopped(sentences):
        yield from computed(sentences[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr("elmokit.tasks.frozen_layers._gpu_room", lambda device: room)
    monkeypatch.setattr("elmokit.tasks.frozen_layers._BLOCK", 1)
    later = [["later"], ["and", "later", "still"]]
    with FrozenLayers(tiny, [0, 2], 1 << 30) as frozen:
        frozen.keep(SENTENCES)
        earlier = np.concatenate(frozen.of(SENTENCES))
        computed = frozen._computed
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(frozen, "_computed", stopped)
            frozen.keep(later)
        frozen.keep(later[1:])
        monkeypatch.setattr(frozen, "_computed", None)
        np.testing.assert_array_equal(np.concatenate(frozen.of(SENTENCES)), earlier)
        found = frozen.of(later[1:])[0].astype(np.float32)
    right = tiny.encode(later[1:], [0, 2], dtype=np.float32)[0].transpose(1, 0, 2)
    np.testing.assert_allclose(found, right, atol=2e-3)


def test_the_limit_is_that_of_all(tiny):
    said = []
    with FrozenLayers(tiny, [0, 2], 7 * tiny.dim * 2 * 2) as frozen:
        frozen.keep(SENTENCES, said.append)  # 6 tokens
        frozen.keep([["one"], ["more"]], said.append)
    assert said[1].startswith("ELMo's layers of 1 tokens")
    assert "; 1 more" in said[1]


def test_gpu_memory_taken_by_another_process(tiny, monkeypatch):
    def taken(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("elmokit.tasks.frozen_layers._gpu_room", lambda device: 1 << 30)
    said = []
    with FrozenLayers(tiny, [0, 2], 1 << 30) as frozen, monkeypatch.context() as patch:
        patch.setattr("elmokit.tasks.frozen_layers.torch.empty", taken)
        frozen.keep([["a", "dog"]], said.append)
    assert "on disk" in said[0]


def test_each_distinct_sentence_once(tiny, monkeypatch):
    given = []
    stream = tiny.stream
    monkeypatch.setattr(
        tiny,
        "stream",
        lambda texts, *rest, **more: stream(given.extend(texts) or texts, *rest, **more),
    )
    with FrozenLayers(tiny, [0], 1 << 20) as frozen:
        frozen.keep(SENTENCES)
        assert given == [["the", "cat", "sat"], ["a", "dog"], ["x"]]


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_the_same_bits_whatever_was_computed_before(one_thread, limit):
    """A resumed training computes layers again, and the words it has seen before are others."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=rng.randrange(1, 12))) for _ in range(200)]
    sentences = [rng.choices(words, k=rng.randrange(1, 40)) for _ in range(32)]
    found = []
    for before in ([], [[word] for word in words]):
        elmo = Elmo.random(device="cpu")
        for sentence in before:
            elmo.encode([sentence])
        with FrozenLayers(elmo, [0, 1, 2], limit) as frozen:
            frozen.keep(sentences)
            found.append(np.concatenate(frozen.of(sentences)))
    np.testing.assert_array_equal(*found)
