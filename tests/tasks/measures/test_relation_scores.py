"""The score of SemEval-2010 task 8, by hand and from the counts of scikit-learn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from elmokit.errors import InputError
from elmokit.tasks.measures.relation_scores import relation_name, relation_scores


def test_by_hand():
    pairs = [
        ("Cause-Effect(e1,e2)", "Cause-Effect(e1,e2)"),  # correct
        ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"),  # wrong direction
        ("Cause-Effect(e2,e1)", "Cause-Effect(e2,e1)"),  # correct
        ("Cause-Effect(e2,e1)", "Other"),
        ("Entity-Origin(e1,e2)", "Cause-Effect(e1,e2)"),
        ("Entity-Origin(e1,e2)", "Entity-Origin(e1,e2)"),  # correct
        ("Other", "Entity-Origin(e2,e1)"),
        ("Other", "Other"),
        ("Message-Topic(e1,e2)", "Other"),
        ("Other", "Member-Collection(e1,e2)"),  # a relation that is not in the gold labels
    ]
    gold, predicted = zip(*pairs, strict=True)
    scores = relation_scores(gold, predicted)
    # Cause-Effect: 2 correct, 4 predicted, 4 gold: P = 2/4, R = 2/4, F1 = 0.5
    # Entity-Origin: 1 correct, 2 predicted, 2 gold: P = 1/2, R = 1/2, F1 = 0.5
    # Message-Topic: 0 correct, 0 predicted, 1 gold: P = 0, R = 0, F1 = 0
    # Member-Collection is not in the gold labels, and Other is no relation.
    # macro F1 = (0.5 + 0.5 + 0) / 3 = 1/3
    assert scores.name == "macro f1"
    assert scores.value == pytest.approx(100 / 3)
    assert scores.others["macro precision"] == pytest.approx(100 / 3)
    assert scores.others["macro recall"] == pytest.approx(100 / 3)
    # micro: 3 correct of 6 predicted and 7 gold: F1 = 2 * 3 / (6 + 7)
    assert scores.others["micro f1"] == pytest.approx(100 * 6 / 13)
    assert scores.others["accuracy"] == 40
    assert list(scores.per_class) == [
        "Cause-Effect", "Entity-Origin", "Member-Collection", "Message-Topic", "Other",
    ]  # fmt: skip
    assert scores.per_class["Cause-Effect"].support == 4
    assert scores.per_class["Other"].precision == pytest.approx(100 / 3)  # 1 of 3
    assert scores.confusion.labels[-1] == "Other"
    assert scores.confusion.labels[:2] == ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)")


def test_macro_f1_is_the_mean_of_f1():
    """Not the F1 of the means, which would be 60 here."""
    gold = ["A(e1,e2)"] * 4 + ["B(e2,e1)"] * 4
    predicted = ["A(e1,e2)", "B(e2,e1)", "B(e2,e1)", "B(e1,e2)"] + ["B(e2,e1)"] * 3 + ["Other"]
    scores = relation_scores(gold, predicted)
    # A: P = 1/1, R = 1/4, F1 = 2/5. B: P = 3/6, R = 3/4, F1 = 6/10.
    assert scores.value == pytest.approx(50)
    assert scores.others["macro precision"] == pytest.approx(75)
    assert scores.others["macro recall"] == pytest.approx(50)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Cause-Effect(e1,e2)", "Cause-Effect"),
        ("Cause-Effect(e2,e1)", "Cause-Effect"),
        ("per:title", "per:title"),
        ("part(of)", "part(of)"),
        ("x(e1,e1)", "x(e1,e1)"),
        ("(e1,e2)", "(e1,e2)"),
        ("", ""),
    ],
)
def test_names(label, name):
    assert relation_name(label) == name


LABELS = st.sampled_from(["born", "works", "none"])


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1))
def test_without_directions_it_is_macro_f1_of_gold_relations(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    relations = sorted({*gold} - {"none"})
    expected = 0.0
    if relations:
        expected = f1_score(gold, predicted, labels=relations, average="macro", zero_division=0)
    scores = relation_scores(gold, predicted, negative="none")
    assert scores.value == pytest.approx(100 * expected)
    everything = f1_score(gold, predicted, labels=sorted({*gold}), average="macro", zero_division=0)
    assert relation_scores(gold, predicted, negative=None).value == pytest.approx(100 * everything)


def test_edges():
    assert relation_scores(["Other"], ["A(e1,e2)"]).value == 0
    assert relation_scores(["A(e1,e2)"], ["A(e2,e1)"]).value == 0
    with pytest.raises(InputError, match="empty"):
        relation_scores([], [])
    with pytest.raises(InputError, match="gold has 1 labels but predicted has 2"):
        relation_scores(["A"], ["A", "B"])
