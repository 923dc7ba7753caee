"""Roles by the definition of CoNLL-2005; the numbers are what srl-eval.pl prints for these tags."""

import pytest

from elmokit.errors import InputError
from elmokit.tasks.measures.role_scores import Argument, arguments_of, role_scores


def scores(gold, predicted, places=([0],), found=([0],)):
    return role_scores([g.split() for g in gold], [p.split() for p in predicted], places, found)


def test_arguments():
    tags = "B-A1 I-A1 B-V B-C-A1 O B-C-A1 B-R-A0 B-C-A2".split()
    assert arguments_of(tags) == [
        Argument("A1", ((0, 2), (3, 4), (5, 6))),
        Argument("R-A0", ((6, 7),)),
        Argument("A2", ((7, 8),)),  # nothing to continue
    ]
    assert Argument("V", ((2, 3),)) in arguments_of(tags, without=None)


def test_a_continuation_belongs_to_the_last_argument_of_its_role():
    found = arguments_of("B-A1 B-A1 B-V B-C-A1 B-C-V".split())
    assert found == [Argument("A1", ((0, 1),)), Argument("A1", ((1, 2), (3, 4)))]


def test_counts():
    """3 correct of 4 predicted and of 5 gold; V does not count, although it is wrong once."""
    gold = ["B-A0 B-V B-A1 I-A1 O", "B-A0 O B-V B-A1 B-AM-TMP"]
    predicted = ["B-A0 B-V B-A1 I-A1 O", "B-A0 O B-V I-V B-A1"]
    found = scores(gold, predicted)
    assert (found.name, found.n, found.unit) == ("f1", 2, "predicates")
    assert found.value == pytest.approx(100 * 6 / 9)
    assert found.others["precision"] == pytest.approx(75)
    assert found.others["recall"] == pytest.approx(60)
    assert found.others["perfect predicates"] == 50
    assert found.per_class["AM-TMP"].f1 == 0
    assert found.per_class["A0"].support == 2
    assert "V" not in found.per_class


def test_parts_count_as_a_whole():
    gold = ["B-A1 B-V O B-C-A1 I-C-A1"]
    assert scores(gold, gold).value == 100
    assert scores(gold, ["B-A1 B-V O B-C-A1 O"]).value == 0
    assert scores(gold, ["B-A1 B-V O B-A1 I-A1"]).value == 0
    assert set(scores(gold, gold).per_class) == {"A1"}


def test_predicates():
    found = scores(["B-V"], ["B-V"], [[0, 3], [1]], [[0, 2, 4], []])
    assert found.value == 0  # no arguments at all
    assert found.others["perfect predicates"] == 100
    assert found.others["predicate precision"] == pytest.approx(100 / 3)
    assert found.others["predicate recall"] == pytest.approx(100 / 3)
    assert found.others["predicate f1"] == pytest.approx(100 / 3)


def test_as_many_of_both():
    with pytest.raises(InputError, match="expected as many in both"):
        scores(["B-V"], ["B-V", "B-V"])


def test_a_word_with_two_frames_is_one_predicate():
    frame = ["B-V", "O"]
    scores = role_scores([frame, frame], [frame, frame], [[0, 0]], [[0]])
    assert scores.others["predicate f1"] == 100
