"""elmokit similarity."""

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.similarity import cosine, sentence_similarity, word_similarity


def test_similarity(cli, tiny_folder):
    tiny = Elmo.load(tiny_folder, device="cpu")
    done = cli("similarity", "I went to the bank", "the bank of the bank", "--word", "bank",
               "-m", tiny_folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bank 5 ~ bank 2" in done.stdout
    assert "bank 5 ~ bank 5" in done.stdout
    pairs = word_similarity(tiny, "I went to the bank", "the bank of the bank", "bank")
    assert [(p.first, p.second) for p in pairs] == [(4, 1), (4, 4)]
    assert pairs[0].cosines[0] == pytest.approx(1)
    for pair in pairs:
        for value in pair.cosines:
            assert f"{value:.3f}" in done.stdout
    done = cli("similarity", "one sentence", "another", "-m", tiny_folder)
    assert "sentences" in done.stdout
    done = cli("similarity", "one sentence", "another", "--word", "bank", "-m", tiny_folder)
    assert done.returncode == 2
    assert "'bank' is not among the tokens of 'one sentence'" in done.stderr


def test_similarity_by_hand(tiny):
    assert cosine(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.5**0.5)
    assert cosine(np.zeros(2), np.ones(2)) == 0
    assert sentence_similarity(tiny, "a b", "a b") == pytest.approx([1, 1, 1])


def test_many_occurrences(cli, tiny, tiny_folder):
    """A table of all pairs would have nine million rows."""
    first, second = " ".join(["bank"] * 3000), " ".join(["bank"] * 7)
    pairs = word_similarity(tiny, first, second, "bank")
    assert len(pairs) == 20 * 7
    assert pairs.counts == [3000, 7]
    done = cli("similarity", first, second, "--word", "bank", "-m", tiny_folder)
    assert done.returncode == 0
    assert done.stderr == (
        "elmokit: the word occurs 3,000 times in the first sentence and 7 times in the second; "
        "only the first 20 of each are compared\n"
    )
    assert "bank 20 ~ bank 7" in done.stdout
    assert "bank 21" not in done.stdout
    assert word_similarity(tiny, "a bank", second, "bank").left_out == ""
