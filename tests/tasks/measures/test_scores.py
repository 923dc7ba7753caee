"""Scores as values, tables and JSON."""

import json

import pytest

from elmokit.tasks.measures.accuracy import label_scores
from elmokit.tasks.measures.correlation import correlation_scores
from elmokit.tasks.measures.scores import ClassScore, Confusion, Scores

GOLD = ["good", "good", "good", "bad"]
PREDICTED = ["good", "good", "bad", "bad"]


def test_json():
    values = label_scores(GOLD, PREDICTED).to_dict()
    assert json.loads(json.dumps(values)) == values
    assert values["name"] == "accuracy"
    assert values["value"] == 75
    assert values["others"] == {"macro f1": pytest.approx((80 + 200 / 3) / 2)}
    assert (values["n"], values["unit"]) == (4, "texts")
    assert values["per_class"]["bad"] == {
        "precision": 50, "recall": 100, "f1": pytest.approx(200 / 3), "support": 1,
    }  # fmt: skip
    assert values["confusion"] == {"labels": ["bad", "good"], "counts": [[1, 0], [1, 2]]}
    assert correlation_scores([1, 2], [2, 3]).to_dict()["confusion"] is None


def test_tables():
    scores = label_scores(GOLD, PREDICTED)
    assert scores.summary_rows() == [
        ["measure", "value"],
        ["accuracy", "75.00"],
        ["macro f1", "73.33"],
        ["texts", "4"],
    ]
    assert scores.class_rows() == [
        ["class", "precision", "recall", "f1", "support"],
        ["bad", "50.00", "100.00", "66.67", "1"],
        ["good", "100.00", "66.67", "80.00", "3"],
    ]
    assert scores.confusion_rows() == [
        ["gold \\ predicted", "bad", "good"],
        ["bad", "1", "0"],
        ["good", "1", "2"],
    ]


def test_tables_without_classes():
    scores = correlation_scores([1, 2, 3], [1.5, 2.5, 3.5])
    assert scores.summary_rows()[1:] == [
        ["pearson", "100.00"],
        ["spearman", "100.00"],
        ["mse", "0.2500"],
        ["pairs", "3"],
    ]
    assert len(scores.class_rows()) == 1
    assert len(scores.confusion_rows()) == 1


def test_repr():
    scores = Scores("f1", 91.234, {"precision": 90, "recall": 92.5}, 3453, "sentences")
    assert repr(scores) == "Scores(f1 91.23, precision 90.00, recall 92.50, 3,453 sentences)"
    assert scores == Scores("f1", 91.234, {"precision": 90, "recall": 92.5}, 3453, "sentences")
    with pytest.raises(AttributeError):
        scores.value = 100


def test_counts_of_nothing_are_zero():
    assert ClassScore.from_counts(0, 0, 0) == ClassScore(0, 0, 0, 0)
    assert ClassScore.from_counts(0, 5, 0) == ClassScore(0, 0, 0, 0)
    assert ClassScore.from_counts(0, 0, 5) == ClassScore(0, 0, 0, 5)
    assert Confusion.count([], []) == Confusion((), ())
    assert Confusion.count([], []).per_class() == {}


def test_the_label_for_none_goes_last():
    assert Confusion.count(["a", "O", "b"], ["z", "a", "b"], last="O").labels == (
        "a", "b", "z", "O",
    )  # fmt: skip


def test_long_labels_of_a_confusion_matrix_are_numbered():
    labels = [f"Component-Whole({k})" for k in range(3)]
    header, *rows = label_scores(labels, labels[::-1]).confusion_rows()
    assert header == ["gold \\ predicted", "1", "2", "3"]
    assert rows[0] == ["1 Component-Whole(0)", "0", "0", "1"]
