"""The word cache does not change results."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.inference import word_cache
from elmokit.inference.batches import NumberedSentences
from elmokit.inference.word_cache import WordCache
from elmokit.nn import ElmoEmbedding
from helpers.numbers import assert_close

WORDS = [f"word{i}" for i in range(50)] + ["日本", "x" * 70, "", "🙂"]


@pytest.fixture
def counted(tiny):
    """A cache for 20 words, and a list of how many words each call of the CNN encoded."""
    n_encoded = []

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = tiny.bilm.token_encoder

        def forward(self, ids):
            n_encoded.append(len(ids))
            return self.inner(ids)

    return WordCache(Counting(), tiny.alphabet, 8, max_bytes=20 * 8 * 4), n_encoded


def look_up(cache, words):
    return cache.vectors(words)[1:]


def test_every_word_is_encoded_once(tiny, counted):
    cache, n_encoded = counted
    sentences = NumberedSentences("<S>", "</S>")
    sentences.add([["a", "b"], []])
    sentences.add([["b", "c", "b"]])
    sentences.close()
    assert sorted(sentences.words) == ["</S>", "<S>", "a", "b", "c"]
    places = sentences.places([2, 0], torch.device("cpu"))
    found = [[sentences.words[i - 1] if i else None for i in row] for row in places.tolist()]
    assert found == [["<S>", "b", "c", "b", "</S>"], ["<S>", "a", "b", "</S>", None]]
    vectors = cache.vectors(sentences.words)
    assert (vectors[0] == 0).all()
    plain = tiny.bilm.token_encoder(torch.from_numpy(tiny.alphabet.encode(sentences.words, 50)))
    assert_close(vectors[1:], plain)
    assert sum(n_encoded) == 5  # each word once


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_words_keep_their_vectors_after_an_interruption(tiny, counted, monkeypatch, error):
    """Wherever a call is interrupted, no word gets the vector of another."""
    cache, _ = counted
    plain = tiny.bilm.token_encoder(torch.from_numpy(tiny.alphabet.encode(WORDS, 50)))
    for start in range(12):
        for good_calls in range(4):
            look_up(cache, WORDS[start : start + 15])
            calls = iter([word_cache.to_device] * good_calls)

            def fail(*arguments, calls=calls):
                for good in calls:
                    return good(*arguments)
                raise error

            with monkeypatch.context() as patch, pytest.raises(error):
                patch.setattr(word_cache, "to_device", fail)
                patch.setattr("elmokit.nn.words.to_device", fail)
                look_up(cache, WORDS[start + 15 : start + 24])
            for words in (slice(0, 20), slice(15, 30)):
                assert_close(look_up(cache, WORDS[words]), plain[words])


def test_threads_can_share_a_cache(tiny, counted):
    cache, _ = counted
    plain = tiny.bilm.token_encoder(torch.from_numpy(tiny.alphabet.encode(WORDS, 50)))
    with ThreadPoolExecutor(4) as pool:
        starts = [i % 40 for i in range(300)]
        found = pool.map(lambda s: look_up(cache, WORDS[s : s + 12]), starts)
        for start, vectors in zip(starts, found, strict=True):
            assert_close(vectors, plain[start : start + 12])


def test_vectors_are_right_and_the_cache_is_bounded(tiny, counted):
    cache, _ = counted
    plain = tiny.bilm.token_encoder(torch.from_numpy(tiny.alphabet.encode(WORDS, 50)))
    rng = np.random.default_rng(0)
    for _ in range(200):
        some = rng.choice(len(WORDS), rng.integers(1, 30), replace=False)
        vectors = look_up(cache, [WORDS[i] for i in some])
        assert_close(vectors, plain[some])
        assert len(cache) <= 20


def test_least_recently_used_words_are_dropped_first(counted):
    cache, n_encoded = counted
    look_up(cache, WORDS[:20])
    look_up(cache, WORDS[:10])  # used again
    look_up(cache, WORDS[20:30])  # 10 … 19 are dropped
    n_encoded.clear()
    look_up(cache, WORDS[:10] + WORDS[20:30])
    assert n_encoded == []
    look_up(cache, WORDS[10:12])
    assert sum(n_encoded) == 2


def test_more_words_than_fit_are_not_cached(tiny, counted):
    cache, _ = counted
    assert look_up(cache, WORDS).shape == (54, 8)
    assert len(cache) == 0


def test_very_long_words_are_not_kept(tiny, counted):
    """A cache that is bounded by its vectors would keep any number of characters."""
    cache, n_encoded = counted
    words = ["a", "x" * 100_000, "b", "y" * 100_000]
    plain = tiny.bilm.token_encoder(torch.from_numpy(tiny.alphabet.encode(words, 50)))
    for _ in range(2):
        assert_close(look_up(cache, words), plain)
        assert len(cache) == 2
    assert sum(n_encoded) == 6  # the short words once
    assert_close(look_up(cache, WORDS[:18]), look_up(cache, WORDS[:18]))
    assert max(map(len, cache._words)) < 1000


def test_results_are_the_same_without_a_cache(tiny_folder):
    texts = [" ".join(WORDS[i : i + 7]) for i in range(40)]
    none = Elmo.load(tiny_folder, device="cpu", cache_mb=0)
    some = Elmo.load(tiny_folder, device="cpu")
    for _ in range(2):
        for a, b in zip(none.encode(texts, "all"), some.encode(texts, "all"), strict=True):
            assert_close(a, b)


def test_changed_weights_clear_the_cache(tiny):
    before = tiny.encode("word", layers=0)
    with torch.no_grad():
        tiny.bilm.token_encoder.projection.bias += 1
    assert_close(tiny.encode("word", layers=0), before + 1)
    tiny.bilm.token_encoder.projection.load_state_dict(
        {
            "weight": tiny.bilm.token_encoder.projection.weight,
            "bias": tiny.bilm.token_encoder.projection.bias - 1,
        }
    )
    assert_close(tiny.encode("word", layers=0), before)


@pytest.mark.parametrize("fused", [False, True])
def test_training_clears_the_cache(tiny, fused):
    """A fused optimizer changes weights without increasing their version counter."""
    embedding = ElmoEmbedding(tiny, trainable=True, dropout=0)
    tiny.encode("word", layers=0)
    state = tiny.warm_state()
    optimizer = torch.optim.AdamW(embedding.parameters(), lr=0.01, fused=fused)
    (mix,), _ = embedding([["word"]])
    mix.sum().backward()
    optimizer.step()
    embedding.eval()
    expected = tiny.bilm.token_encoder(torch.from_numpy(tiny.alphabet.encode(["word"])))
    assert_close(tiny.encode("word", layers=0)[:, :8], expected.detach())
    changed = tiny.warm_state().layers[1][1] - state.layers[1][1]
    assert changed.abs().max() > 1e-4


def test_a_change_of_one_character_vector_clears_the_cache(tiny):
    before = tiny.encode("word", layers=0)
    with torch.no_grad():
        tiny.bilm.token_encoder.character_embedding.weight[ord("w") + 1] += 1
    assert np.abs(tiny.encode("word", layers=0) - before).max() > 1e-3


def test_changes_through_data_clear_the_cache(tiny):
    before = tiny.encode("word", layers=0)
    tiny.bilm.token_encoder.projection.bias.data.add_(1)
    assert_close(tiny.encode("word", layers=0), before + 1)


def test_autocast_does_not_change_results(tiny):
    for layers in ("all", "mix"):
        expected = tiny.encode("some words", layers)
        tiny._engine.cache.clear()
        with torch.autocast("cpu", torch.bfloat16):
            inside = tiny.encode("some words", layers)
        for found in (inside, tiny.encode("some words", layers)):
            np.testing.assert_array_equal(found, expected)
