"""Perplexity of files, and scores in batches."""

import math

import numpy as np
import pytest

from elmokit import Perplexity
from elmokit.analysis.text_perplexity import perplexity_of_files, reads_tokenized, score_files
from elmokit.errors import InputError, UnsupportedModelError
from elmokit.inference.perplexity import mean_perplexities
from elmokit.io.progress import DelayedProgress
from helpers.pretraining import recipe, run

LINES = ["the cat sat .", "a zebra", "on the mat . the cat sat on a mat"]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "text").write_text("\n\n".join(LINES) + "\n")
    return tmp_path / "text"


def test_files_are_scored_as_sentences_are(lm, path):
    found = perplexity_of_files(lm, [path], tokenized=True)
    expected = lm.perplexity(LINES)
    assert found == expected
    assert (found.n_tokens, found.n_sentences, found.n_predictions) == (16, 3, 19)
    assert found.unknown_rate == pytest.approx(1 / 16)
    bits = found.n_predictions * math.log2(found.mean) / sum(len(line) + 1 for line in LINES)
    assert found.bits_per_character == pytest.approx(bits)


def test_max_tokens_cuts_the_last_sentence(lm, path):
    found = perplexity_of_files(lm, [path], tokenized=True, max_tokens=8)
    assert found == lm.perplexity([*LINES[:2], "on the"])
    with pytest.raises(InputError, match="max_tokens= must be at least 1, not 0"):
        perplexity_of_files(lm, [path], max_tokens=0)


def test_windows_change_nothing(lm, path, monkeypatch):
    whole = perplexity_of_files(lm, [path])
    monkeypatch.setattr("elmokit.elmo._CPU_SCORED_TOKENS", 1)
    assert perplexity_of_files(lm, [path]).mean == pytest.approx(whole.mean, rel=1e-6)


def test_scores_of_a_batch_are_those_of_each_sentence(lm):
    texts = [*LINES, "", "<UNK> cat"]
    for text, score in zip(texts, lm.score(texts), strict=True):
        (alone,) = lm.score([text])
        assert score.tokens == alone.tokens
        np.testing.assert_array_equal(score.known, alone.known)
        for a, b in ((score.forward, alone.forward), (score.backward, alone.backward)):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert score.start == pytest.approx(alone.start, rel=1e-5)
        assert score.end == pytest.approx(alone.end, rel=1e-5)
    assert score.known.tolist() == [False, True]


def test_a_forward_model_has_no_backward_perplexity():
    counts = {"n_tokens": 3, "n_sentences": 1, "n_unknown": 0, "n_characters": 8}
    one = Perplexity.from_losses([4.0], **counts)
    assert one.backward is None
    assert "backward" not in one.values()
    assert one.forward == one.mean == pytest.approx(math.e)
    two = Perplexity.from_losses([4.0, 8.0], **counts)
    assert two.values()["backward"] == pytest.approx(math.e**2)
    assert two.mean == pytest.approx(math.e**1.5)
    assert two.bits_per_character == pytest.approx(6 / math.log(2) / 8)


def test_no_overflow_and_no_division_by_zero():
    found = mean_perplexities(np.array([[1e9, 1.0, 0.0]]), np.array([1.0, 1.0, 0.0]))
    np.testing.assert_array_equal(found[0], [np.inf, np.exp(1.0), np.nan])
    empty = Perplexity.from_losses([1.0], n_tokens=0, n_sentences=1, n_unknown=0, n_characters=0)
    assert empty.unknown_rate == 0
    assert math.isnan(empty.bits_per_character)


def test_text_without_tokens(lm, tiny, tmp_path):
    (tmp_path / "blank").write_text("\n \n")
    with pytest.raises(InputError, match="no tokens found in .*blank"):
        perplexity_of_files(lm, [tmp_path / "blank"])
    with pytest.raises(UnsupportedModelError, match="no softmax"):
        next(score_files(tiny, [tmp_path / "blank"]))


def test_a_run_on_tokenised_text_is_recognised(text, lm_folder, tmp_path):
    run(text, tmp_path / "run", recipe(training={"epochs": 0.05}))
    assert reads_tokenized(tmp_path / "run")
    assert not reads_tokenized(tmp_path / "run" / "best")
    assert not reads_tokenized(lm_folder)
    assert not reads_tokenized("en")


def test_progress(lm, tmp_path, monkeypatch):
    """Progress counts bytes, or tokens with max_tokens."""
    (tmp_path / "text").write_text("the cat sat .\n" * 2000)
    bars = []

    class Bar(DelayedProgress):
        def __init__(self, what, total, unit):
            super().__init__(what, total, unit)
            self.steps, self.total, self.unit = [], total, unit
            bars.append(self)

        def advance(self, n):
            self.steps.append(n)

    monkeypatch.setattr("elmokit.analysis.text_perplexity.DelayedProgress", Bar)
    perplexity_of_files(lm, [tmp_path / "text"])
    perplexity_of_files(lm, [tmp_path / "text"], max_tokens=5000)
    assert [(bar.total, bar.unit) for bar in bars] == [(28_000, "bytes"), (5000, "tokens")]
    assert [sum(bar.steps) for bar in bars] == [28_000, 5000]
    assert min(len(bar.steps) for bar in bars) > 1
