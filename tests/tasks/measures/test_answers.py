"""Exact match and F1 of SQuAD."""

import pytest

from elmokit.errors import InputError
from elmokit.tasks.measures.answers import answer_scores, exact_match, normalised, shared_words


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The  Denver\tBroncos!", "denver broncos"),
        ("a an the", ""),
        ("an apple a day", "apple day"),
        ("theatre", "theatre"),
        ("U.S.", "us"),
        ("the-end", "theend"),  # punctuation goes first
        ("$1,000", "1000"),
        ("“quoted”", "“quoted”"),  # the official script knows ASCII only
        ("北京。", "北京"),
    ],
)
def test_normalisation(answer, expected):
    assert normalised(answer) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "match", "f1"),
    [
        ("Santa Clara, California", "the Santa Clara, California", 1, 1),
        ("Santa Clara", "Santa Clara California", 0, 0.8),
        ("Broncos", "Denver", 0, 0),
        ("the", "a", 1, 0),  # nothing is left to share, as in the official script
        ("", "x", 0, 0),
        ("x x y", "x y y", 0, 2 / 3),  # a word counts as often as it occurs
        ("in 1066", "1066", 0, 2 / 3),
        ("北京大学", "北京", 0, 2 / 3),  # characters
    ],
)
def test_one_answer(predicted, gold, match, f1):
    assert exact_match(predicted, gold) == match
    assert shared_words(predicted, gold) == pytest.approx(f1)


def test_the_best_gold_answer_counts():
    gold = [["Denver Broncos", "The Broncos"], ["gold", "golden"], ["Levi's Stadium"]]
    scores = answer_scores(gold, ["broncos", "gold color", "Santa Clara"])
    # 1, 2/3 and 0; one of three is exact
    assert scores.value == pytest.approx(100 * (1 + 2 / 3) / 3)
    assert scores.others == {"exact match": pytest.approx(100 / 3)}
    assert (scores.name, scores.n, scores.unit) == ("f1", 3, "questions")


def test_numbers_of_answers():
    with pytest.raises(InputError, match="2 questions but predicted has 1"):
        answer_scores([["a"], ["b"]], ["a"])
    with pytest.raises(InputError, match="empty"):
        answer_scores([], [])
