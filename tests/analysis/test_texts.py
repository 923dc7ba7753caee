"""Sentences of running text."""

import itertools
import random

import numpy as np
import pytest

from elmokit.analysis.texts import Reservoir, read_sentences, sample_sentences, sentences_of

TEXT = "".join(
    f"The cat saw the {a}. A {b} ran to the {a}!\n"
    for a, b in itertools.product(["dog", "house", "tree"], ["bird", "man", "boy", "girl"])
)


def test_reservoir_is_fair():
    rng = random.Random(0)
    counts = np.zeros(10)
    for _ in range(3000):
        kept = Reservoir(3, rng)
        for i in range(10):
            kept.add(i)
        assert kept.seen == 10
        counts[kept.items] += 1
    assert counts / 3000 == pytest.approx(np.full(10, 0.3), abs=0.04)


def test_sample_of_sentences(tiny, tmp_path):
    path = tmp_path / "text"
    path.write_text(TEXT + TEXT, encoding="utf-8")
    everything = sample_sentences(tiny, path, 10_000)
    assert len(everything) == len({tuple(s) for s in everything}) == 3 + 12  # none twice
    some = sample_sentences(tiny, path, 20, seed=1)
    assert sum(map(len, some)) == 20
    assert some == sample_sentences(tiny, path, 20, seed=1)
    assert some != sample_sentences(tiny, path, 20, seed=2)
    assert sentences_of(tiny, "the cat. The dog", True) == [["the", "cat.", "The", "dog"]]
    assert sentences_of(tiny, "the cat. The dog") == [["the", "cat."], ["The", "dog"]]


def test_read_sentences(tiny, tmp_path):
    (tmp_path / "text").write_text("One cat. Two cats.\n\n \nthree .\n")
    assert list(read_sentences(tiny, [tmp_path / "text"], False)) == [
        ["One", "cat."], ["Two", "cats."], ["three", "."]
    ]  # fmt: skip
    assert len(list(read_sentences(tiny, [tmp_path / "text"], True))) == 2
