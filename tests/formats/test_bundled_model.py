"""The English model bundled with the package."""

import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.similarity import word_similarity
from elmokit.formats import DEFAULT_MODEL
from elmokit.io.lines import read_lines
from elmokit.text.sentences import split_sentences

MONEY = [
    "I went to the bank to deposit money",
    "She opened an account at the bank on Main Street",
    "The bank raised its interest rates again",
    "He borrowed ten thousand dollars from a bank in London",
]
RIVER = [
    "I sat by the bank of the river",
    "They walked along the muddy bank of the stream",
    "The boat was tied to a tree on the left bank of the Rhine",
    "Willows grew along the bank of the lake",
]


@pytest.fixture(scope="module")
def en():
    return Elmo.load(device="cpu")


def test_it_is_found_by_name(en, monkeypatch, tmp_path):
    (named,) = Elmo.load("en", device="cpu").encode(["the bank"])
    assert np.array_equal(en.encode(["the bank"])[0], named)
    (tmp_path / "en").mkdir()
    monkeypatch.chdir(tmp_path)  # a local folder named en does not replace the default
    assert np.array_equal(Elmo.load(device="cpu").encode(["the bank"])[0], named)


def test_senses_of_bank_differ(en):
    def cosines(pairs):
        return np.array([word_similarity(en, a, b, "bank")[0].cosines for a, b in pairs])

    same = cosines(
        [(s[i], s[j]) for s in (MONEY, RIVER) for i in range(len(s)) for j in range(i)]
    ).mean(0)
    other = cosines([(a, b) for a in MONEY for b in RIVER]).mean(0)
    assert same[0] == pytest.approx(1, abs=1e-5)  # the token layer does not see the context
    assert other[0] == pytest.approx(1, abs=1e-5)
    assert same[2] > other[2] + 0.1
    assert same[1] > other[1]


def test_it_predicts_english(en):
    right = en.perplexity(["He went to the bank to deposit some money ."]).mean
    wrong = en.perplexity(["money some deposit to bank the to went He ."]).mean
    assert right < wrong / 20
    words = [word for word, _ in en.substitutes("She sat on the edge of the bed .", 4)]
    assert "side" in words
    words = [word for word, _ in en.substitutes("He went to the bank to deposit some money .", 4)]
    assert "bank" in words
    assert not set(words) & {'"', "first", ",", "and"}  # frequent in any context


def test_it_is_small_and_described(en):
    assert sum(p.stat().st_size for p in DEFAULT_MODEL.iterdir()) <= 48e6
    card = (DEFAULT_MODEL / "README.md").read_text(encoding="utf-8")
    assert f"{en.n_parameters:,}" in card
    assert "CC BY-SA 3.0" in card


def test_perplexity_on_held_out_text(en):
    folder = os.environ.get("ELMOKIT_TEST_DATA")
    if not folder:
        pytest.skip("ELMOKIT_TEST_DATA is not set, so there is no held-out text to score")
    path = Path(folder) / "data" / "en" / "enwiki-2015.test.txt.xz"
    if not path.exists():
        pytest.skip("ELMOKIT_TEST_DATA does not contain the held-out text")
    lines = read_lines(path)
    # one sentence of every twelfth paragraph, for a mix of articles
    sentences = [split_sentences(line)[0] for line in islice(lines, 0, None, 12) if line.strip()]
    assert en.perplexity(sentences[:200]).mean < 65
