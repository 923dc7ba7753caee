"""Accuracy and macro F1, by hand and against scikit-learn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from sklearn.metrics import precision_recall_fscore_support as class_scores

from elmokit.errors import InputError
from elmokit.tasks.measures.accuracy import label_scores, tag_scores

LABELS = st.sampled_from(["a", "b", "c", "正面"])
PAIRS = st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=40)


def test_by_hand():
    scores = label_scores(["x", "x", "x", "y", "y", "z"], ["x", "x", "y", "y", "z", "w"])
    assert scores.name == "accuracy"
    assert scores.value == pytest.approx(100 * 3 / 6)
    # x: P 2/2, R 2/3, F1 4/5; y: P 1/2, R 1/2, F1 1/2; z: 0/1, 0/1; w: 0/1, 0/0
    assert scores.others["macro f1"] == pytest.approx(100 * (4 / 5 + 1 / 2 + 0 + 0) / 4)
    assert scores.per_class["x"].precision == 100
    assert scores.per_class["x"].recall == pytest.approx(200 / 3)
    assert scores.per_class["w"].recall == 0  # undefined
    assert [scores.per_class[label].support for label in "wxyz"] == [0, 3, 2, 1]


def test_tags():
    scores = tag_scores([["N", "V"], [], ["N"]], [["N", "N"], [], ["N"]])
    assert (scores.n, scores.unit) == (3, "tokens")
    assert scores.value == pytest.approx(200 / 3)
    assert scores.confusion.labels == ("N", "V")
    assert scores.confusion.counts == ((2, 0), (1, 0))


def test_one_class():
    scores = label_scores(["a", "a"], ["a", "a"])
    assert scores.value == scores.others["macro f1"] == 100


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(PAIRS)
def test_against_scikit_learn(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    scores = label_scores(gold, predicted)
    labels = sorted({*gold, *predicted})
    expected = class_scores(gold, predicted, labels=labels, zero_division=0)
    assert scores.value == pytest.approx(100 * accuracy_score(gold, predicted))
    macro = f1_score(gold, predicted, average="macro", zero_division=0)
    assert scores.others["macro f1"] == pytest.approx(100 * macro)
    for label, precision, recall, f1, support in zip(labels, *expected, strict=True):
        found = scores.per_class[label]
        assert found.precision == pytest.approx(100 * precision)
        assert found.recall == pytest.approx(100 * recall)
        assert found.f1 == pytest.approx(100 * f1)
        assert found.support == support
    matrix = confusion_matrix(gold, predicted, labels=labels).tolist()
    assert [list(row) for row in scores.confusion.counts] == matrix
    halves = [gold[:3], gold[3:]], [predicted[:3], predicted[3:]]
    assert tag_scores(*halves).per_class == scores.per_class


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([], [], "empty; expected at least one of the labels"),
        (["a"], [], "gold has 1 labels but predicted has 0"),
        (["a"], [1], "predicted contains 1; expected strings only"),
        ("a", ["a"], "gold must be a list of strings"),
    ],
)
def test_wrong_labels(gold, predicted, message):
    with pytest.raises(InputError, match=message):
        label_scores(gold, predicted)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([], [], "at least one of the sentences"),
        ([[], []], [[], []], "the sentences are empty"),
        ([["a"]], [["a"], ["b"]], "gold has 1 sentences but predicted has 2"),
        ([["a"], ["b"]], [["a"], ["b", "c"]], "sentence 2 has 1 tags in gold but 2 in predicted"),
        ([["a"]], ["a"], "each sentence of predicted must be a list"),
        (None, [["a"]], "gold must be a list of sentences"),
    ],
)
def test_wrong_sentences(gold, predicted, message):
    with pytest.raises(InputError, match=message):
        tag_scores(gold, predicted)
