"""The vectors of a sentence depend on the sentence alone."""

import random

import numpy as np
import pytest

from elmokit import Elmo
from helpers.numbers import assert_close

WORDS = "the bank of river money deposit went sat by I to a naïve 日本 🙂 , . unbelievably".split()


@pytest.fixture(scope="module")
def small():
    return Elmo.random("small", device="cpu")


@pytest.fixture(scope="module")
def sentences():
    rng = random.Random(0)
    return [[rng.choice(WORDS) for _ in range(rng.randint(0, 40))] for _ in range(70)]


@pytest.fixture(scope="module")
def alone(small, sentences):
    return [small.encode([s], "all")[0] for s in sentences]


@pytest.mark.parametrize("batch_size", [1, 7, 64, None])
@pytest.mark.parametrize("shuffled", [False, True])
def test_batches_and_order_do_not_change_results(small, sentences, alone, batch_size, shuffled):
    order = list(range(len(sentences)))
    if shuffled:
        random.Random(1).shuffle(order)
    together = small.encode([sentences[i] for i in order], "all", batch_size=batch_size)
    for i, layers in zip(order, together, strict=True):
        assert layers.shape == (3, len(sentences[i]), 256)
        assert_close(layers, alone[i])
        if layers.size:
            assert np.abs(layers - alone[i]).mean() < 1e-6 * max(1, np.abs(alone[i]).max())


def test_earlier_calls_do_not_change_results(tiny):
    text = "The bank of the river"
    first = tiny.encode(text)
    tiny.encode(["something else", "entirely"] * 10)
    np.testing.assert_array_equal(tiny.encode(text), first)


def test_batches_do_not_change_results_with_active_clips(tiny):
    rng = random.Random(2)
    sentences = [[rng.choice(WORDS) for _ in range(rng.randint(0, 30))] for _ in range(40)]
    together = tiny.encode(sentences, "all")
    for sentence, layers in zip(sentences, together, strict=True):
        assert_close(tiny.encode([sentence], "all")[0], layers)
