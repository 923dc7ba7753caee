"""Entailment: what is left out, the case of labels, pairs as input, and attention."""

import numpy as np
import pytest
import torch

from elmokit import DataWarning
from elmokit.errors import InputError
from elmokit.tasks import EntailmentClassifier
from elmokit.tasks.readers.examples import EntailmentExample
from helpers.pictures import n_colours

PAIRS = [
    EntailmentExample("the cat sleeps .", "an animal sleeps .", "entailment"),
    EntailmentExample("the cat sleeps .", "no cat sleeps . it ran .", "CONTRADICTION"),
    EntailmentExample("a man sings .", "a man is sad .", "Neutral"),
]
NO_ANSWER = EntailmentExample("a man", "a boy", "-")


@pytest.fixture
def nli(tiny, quick):
    quick["training"]["epochs"] = 1
    return EntailmentClassifier.train(PAIRS, PAIRS, elmo=tiny, settings=quick)


def test_pairs_without_an_answer_are_left_out_aloud(tiny, quick, nli):
    quick["training"]["epochs"] = 1
    with pytest.warns(DataWarning, match="left out 2 of 5 examples in train: no gold label .-"):
        task = EntailmentClassifier.train(
            [*PAIRS, NO_ANSWER, NO_ANSWER], PAIRS, elmo=tiny, settings=quick
        )
    assert task.labels == ["contradiction", "entailment", "neutral"]
    with pytest.warns(DataWarning, match="left out 1 of 4 examples in examples"):
        assert task.evaluate([*PAIRS, NO_ANSWER]).n == 3
    with pytest.raises(InputError, match="no example of examples has an answer"):
        task.evaluate([NO_ANSWER])
    # the others are trained as if these had never been there
    for a, b in zip(nli.head.parameters(), task.head.parameters(), strict=True):
        assert torch.equal(a, b)


def test_numbered_labels(tiny, quick):
    """Of Hugging Face: -1 beside 0, 1 and 2 is no answer; beside 0 and 1 it is a label."""
    quick["training"]["epochs"] = 1
    numbered = [EntailmentExample("a", "b", label) for label in ("0", "1", "2", "-1")]
    with pytest.warns(DataWarning, match="gold label .-1"):
        task = EntailmentClassifier.train(numbered, numbered[:3], elmo=tiny, settings=quick)
    assert task.labels == ["0", "1", "2"]
    others = [EntailmentExample("a", "b", label) for label in ("0", "1", "-1")]
    assert EntailmentClassifier.train(others, others, elmo=tiny, settings=quick).labels == [
        "-1", "0", "1",
    ]  # fmt: skip


def test_case_of_labels(nli, file):
    rows = "".join(f"{e.premise}\t{e.hypothesis}\t{e.label.upper()}\n" for e in PAIRS)
    scores = nli.evaluate(file("a.tsv", "sentence_A\tsentence_B\tlabel\n" + rows))
    assert scores == nli.evaluate(PAIRS)
    assert set(scores.per_class) <= {"contradiction", "entailment", "neutral"}
    assert (scores.name, scores.unit, scores.n) == ("accuracy", "pairs", 3)
    assert sum(map(sum, scores.confusion.counts)) == 3


def test_one_pair_or_many(nli):
    pair = ("a man sings .", "a man is sad .")
    one = nli(pair)
    assert nli.show(one) == f"{one.label} {one.probabilities[one.label]:.3f}"
    assert nli.record(one)["probabilities"] == one.probabilities
    for same in ("\t".join(pair), tuple(text.split() for text in pair), EntailmentExample(*pair)):
        assert nli(same).probabilities == pytest.approx(one.probabilities, abs=1e-4)
    assert [found.label for found in nli([pair, pair])] == [one.label] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("only one", "expected two texts"),
        ("a\tb\tc", "expected two texts"),
        (("a", " "), "the hypothesis is empty"),
        ("\ta", "the premise is empty"),
        (([], ["a"]), "the premise is empty"),
    ],
)
def test_malformed_pairs(nli, given, message):
    with pytest.raises(InputError, match=message):
        nli(given)


def test_batches_do_not_change_predictions(nli):
    texts = [(e.premise * n, e.hypothesis) for e in PAIRS for n in (1, 3)]
    alone = [found.probabilities for found in nli.predict(texts, batch_size=1)]
    for one, other in zip(alone, nli.predict(texts, batch_size=4), strict=True):
        assert one == pytest.approx(other.probabilities, abs=1e-5)


def test_long_texts_are_cut(tiny, quick):
    quick["training"]["epochs"] = 1
    quick["model"]["most_words"] = 4
    nli = EntailmentClassifier.train(PAIRS, PAIRS, elmo=tiny, settings=quick)
    item = nli.prepare(EntailmentExample("the cat sat on the mat .", "it sat ."))
    assert item.texts == [[["the", "cat"], ["mat", "."]], [["it", "sat", "."]]]


def test_attention(nli, tmp_path):
    found = nli.attention("a cat sleeps .", "an animal .")
    assert (found.premise, found.hypothesis) == (["a", "cat", "sleeps", "."], ["an", "animal", "."])
    assert found.weights.shape == (3, 4)
    np.testing.assert_allclose(found.weights.sum(1), 1, atol=1e-5)
    assert found.title == nli.show(nli(("a cat sleeps .", "an animal .")))
    found = nli.attention("a", "an animal sleeps .")
    np.testing.assert_allclose(found.weights, 1)  # there is only one word to look at


def test_picture(nli, tmp_path):
    pytest.importorskip("matplotlib")
    files = nli.attention("a cat sleeps .", "an animal .").write(tmp_path / "seen")
    assert sorted(path.name for path in files) == ["seen.csv", "seen.json", "seen.png", "seen.svg"]
    assert n_colours(tmp_path / "seen.png") > 20
