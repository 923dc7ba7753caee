"""Scores, perplexity and substitutes, against an independent softmax in float64."""

import math

import h5py
import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import FormatError, InputError, ShapeError, UnsupportedModelError
from elmokit.inference.scoring import zipf
from helpers.models import TINY, VOCABULARY, write_published
from helpers.numbers import assert_close
from helpers.reference import Reference

TEXTS = ["the cat sat on the mat .", "a zebra sat", "", "cat"]


@pytest.fixture
def log_probabilities(lm_folder):
    """A function from tokens to log-probabilities (T + 2, V), forward and backward."""
    reference = Reference.open(TINY, lm_folder / "weights.hdf5")
    with h5py.File(lm_folder / "softmax.hdf5") as file:
        weight, bias = file["softmax/W"][()].astype(float), file["softmax/b"][()].astype(float)

    def of(tokens):
        layers, _ = reference.layers(tokens)
        full = _with_marks(reference, tokens)
        assert np.allclose(full[1:-1], layers[-1])
        result = []
        for half in (full[:, :8], full[:, 8:]):
            logits = half @ weight.T + bias
            result.append(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))
        return result

    return of


def _with_marks(reference, tokens):
    """The top layer (T + 2, D) of the reference, including the positions of both marks."""
    lstm = reference.options["lstm"]
    marked = np.array([reference.token(word) for word in ["<S>", *tokens, "</S>"]])
    halves = []
    for direction in (0, 1):
        x = marked[:: 1 if direction == 0 else -1]
        for layer in range(lstm["n_layers"]):
            start = (np.zeros(lstm["projection_dim"]), np.zeros(lstm["dim"]))
            out, _ = reference.lstm(x, direction, layer, start)
            x = out + x if layer else out
        halves.append(x[:: 1 if direction == 0 else -1])
    return np.concatenate(halves, -1)


def test_scores_agree_with_the_reference(lm, log_probabilities):
    for text, score in zip(TEXTS, lm.score(TEXTS), strict=True):
        tokens = text.split()
        forward, backward = log_probabilities(tokens)
        ids = [VOCABULARY.index(t) if t in VOCABULARY else 2 for t in tokens]
        n = len(tokens)
        assert score.tokens == tokens
        assert score.known.tolist() == [t in VOCABULARY for t in tokens]
        assert_close(score.forward, [forward[i, ids[i]] for i in range(n)])
        assert_close(score.backward, [backward[i + 2, ids[i]] for i in range(n)])
        assert_close(score.end, forward[n, 1])
        assert_close(score.start, backward[1, 0])


def test_perplexity_is_the_exponential_of_the_mean_loss(lm):
    scores = lm.score(TEXTS)
    n = 7 + 3 + 0 + 1 + 4
    forward = -sum(s.forward.sum() + s.end for s in scores) / n
    backward = -sum(s.backward.sum() + s.start for s in scores) / n
    found = lm.perplexity(TEXTS)
    assert found.forward == pytest.approx(math.exp(forward), rel=1e-5)
    assert found.backward == pytest.approx(math.exp(backward), rel=1e-5)
    assert found.mean == pytest.approx(math.exp((forward + backward) / 2), rel=1e-5)
    assert found.n_predictions == n
    assert found.unknown_rate == pytest.approx(1 / 11)
    with pytest.raises(InputError):
        lm.perplexity([])


def test_perplexity_of_a_diverged_model_is_infinite(lm):
    lm._lm.softmax.weight *= 1e4
    assert lm.perplexity(TEXTS).mean == math.inf


def test_scores_do_not_depend_on_how_many_logits_are_in_memory(lm, monkeypatch):
    whole = lm.score(TEXTS)
    monkeypatch.setattr("elmokit.nn.softmax._LOGITS", 25)  # two rows at a time
    for a, b in zip(whole, lm.score(TEXTS), strict=True):
        assert_close(a.forward, b.forward)


def test_substitutes_follow_bayes_rule(lm, log_probabilities):
    text = "the cat sat on a mat"
    found = lm.substitutes(text, 1, k=20)
    forward, backward = log_probabilities(text.split())
    total = (forward[1] + backward[3])[3:]
    ranks = np.log(np.arange(1, 8))
    exponent = min(1, max(0, -np.polyfit(ranks, total / 2, 1)[0]))
    both = np.exp(total + exponent * ranks)
    both /= both.sum()
    order = np.argsort(-both)
    assert [word for word, _ in found] == [VOCABULARY[3 + i] for i in order]
    np.testing.assert_allclose([p for _, p in found], both[order], rtol=1e-4)
    # the present word has no influence
    again = lm.substitutes("the zebra sat on a mat", 1, k=20)
    assert [word for word, _ in again] == [word for word, _ in found]
    np.testing.assert_allclose([p for _, p in again], [p for _, p in found], rtol=1e-4)
    for wrong in (-1, 6):
        with pytest.raises(InputError, match="position must be a whole number from 0 to 5"):
            lm.substitutes(text, wrong)


def test_zipf_estimates_the_exponent():
    ranks = torch.arange(1, 1001).double()
    noise = torch.randn(1000, generator=torch.Generator().manual_seed(0)).double()
    fall = zipf(5 - 0.7 * ranks.log())
    torch.testing.assert_close(fall, -0.7 * ranks.log())
    torch.testing.assert_close(zipf(-2 * ranks.log() + noise), -ranks.log())  # at most 1
    assert zipf(ranks.log()).abs().max() == 0  # rare words first
    shuffled = (-ranks.log())[torch.randperm(1000, generator=torch.Generator().manual_seed(0))]
    assert zipf(shuffled)[-1].abs() < 0.5
    assert zipf(torch.zeros(1)).tolist() == [0]


def test_substitutes_are_never_marks(tmp_path):
    folder = write_published(tmp_path, TINY, vocabulary=["a", "</S>", "b", "<UNK>", "<S>", "c"])
    found = Elmo.load(folder, device="cpu").substitutes("a b", 0, k=10)
    assert sorted(word for word, _ in found) == ["a", "b", "c"]
    assert sum(p for _, p in found) == pytest.approx(1)


def test_models_without_a_softmax_refuse_to_score(tiny):
    for call in (lambda: tiny.score(["a"]), lambda: tiny.substitutes("a b", 0)):
        with pytest.raises(UnsupportedModelError, match="has no softmax"):
            call()


def test_softmax_files_can_be_named(lm_folder, lm):
    named = Elmo.load(
        options=lm_folder / "options.json",
        weights=lm_folder / "weights.hdf5",
        softmax=lm_folder / "softmax.hdf5",
        vocabulary=lm_folder / "vocab.txt",
        device="cpu",
    )
    np.testing.assert_array_equal(
        named.score(["the cat"])[0].forward, lm.score(["the cat"])[0].forward
    )


def test_softmax_and_vocabulary_must_match(lm_folder, tmp_path):
    files = {
        "options": lm_folder / "options.json",
        "weights": lm_folder / "weights.hdf5",
        "softmax": lm_folder / "softmax.hdf5",
    }
    with pytest.raises(FormatError, match="no vocabulary file"):
        Elmo.load(**files)
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(ShapeError, match=r"softmax of 10 words but .*vocab.txt has 3"):
        Elmo.load(**files, vocabulary=tmp_path / "vocab.txt")
    with pytest.raises(FormatError, match="not a softmax file"):
        Elmo.load(**(files | {"softmax": lm_folder / "weights.hdf5"}))
