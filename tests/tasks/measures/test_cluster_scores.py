"""Scores of coreference against published worked examples."""

import itertools
import random

import pytest

from elmokit.errors import InputError
from elmokit.tasks.measures.cluster_scores import cluster_scores

KEY = "a bc def"
# The test cases of the reference scorer of CoNLL-2012, which publishes CEAF; MUC and B³ by hand.
# Each is the response, then recall and precision of muc, b3 and ceaf.
CASES = {
    "a bc def": [3 / 3, 3 / 3, 1, 1, 1, 1],
    "a de": [1 / 3, 1 / 1, (1 + 2 * 2 / 3) / 6, 3 / 3, 1.8 / 3, 1.8 / 2],
    "a bcx defy z": [
        3 / 3, 3 / 5, 6 / 6, (1 + 2 * 2 / 3 + 3 * 3 / 4) / 9,
        (1 + 4 / 5 + 6 / 7) / 3, (1 + 4 / 5 + 6 / 7) / 4,
    ],
    "a bcx dy z": [
        1 / 3, 1 / 3, (1 + 2 + 1 / 3) / 6, (1 + 2 * 2 / 3 + 1 / 2) / 7, 2.2 / 3, 2.2 / 4,
    ],
    "a bcxB dy z": [
        1 / 3, 1 / 4, (1 + 2 + 1 / 3) / 6, (1 + 2 * 2 / 4 + 1 / 2) / 8,
        (1 + 4 / 6 + 2 / 5) / 3, (1 + 4 / 6 + 2 / 5) / 4,
    ],
    "a bcx dy Bz": [
        1 / 3, 1 / 4, (1 + 2 + 1 / 3) / 6, (1 + 2 * 2 / 3 + 1 / 2) / 8, 2.2 / 3, 2.2 / 4,
    ],
}  # fmt: skip


def clusters(text):
    return [list(cluster) for cluster in text.split()]


def values(scores):
    sides = itertools.product(("muc", "b3", "ceaf"), ("recall", "precision"))
    return [scores.others[f"{measure} {side}"] / 100 for measure, side in sides]


@pytest.mark.parametrize("response", CASES)
def test_cases_of_the_reference_scorer(response):
    scores = cluster_scores([clusters(KEY)], [clusters(response)])
    assert values(scores) == pytest.approx(CASES[response])


def test_the_example_of_the_reference_paper():
    """Pradhan et al. (2014): key, response and the values printed there."""
    scores = cluster_scores([clusters("abc defg")], [clusters("ab cd fghi")])
    assert values(scores) == pytest.approx([0.40, 0.40, 0.42, 0.50, 0.65, 0.43], abs=0.005)
    b3 = 2 * 0.5 * (5 / 12) / (0.5 + 5 / 12)
    assert scores.value == pytest.approx(100 * (0.4 + b3 + 0.52) / 3)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("12345 6789ABC", (94.7, 86.5, 73.3)),
        ("1234589ABC 67", (94.7, 73.7, 66.7)),
        ("123456789ABC", (90.0, 54.5, 29.4)),
        ("1 2 3 4 5 6 7 8 9 A B C", (0.0, 40.0, 17.8)),
    ],
)
def test_the_systems_of_luo(response, expected):
    """The systems that Luo (2005) compares: F of MUC, B³ and CEAFφ4, computed by hand."""
    scores = cluster_scores([clusters("12345 67 89ABC")], [clusters(response)])
    found = [scores.others[f"{name} f1"] for name in ("muc", "b3", "ceaf")]
    assert found == pytest.approx(expected, abs=0.05)


def test_singletons_can_be_left_out():
    gold, predicted = clusters("ab c d"), clusters("ab cx e")
    with_them = cluster_scores([gold], [predicted])
    without = cluster_scores([clusters("ab")], [clusters("ab cx")])
    assert with_them.others["avg f1 without singletons"] == pytest.approx(without.value)
    assert with_them.value != pytest.approx(without.value)
    assert with_them.others["mention f1"] == pytest.approx(200 * 3 / (4 + 5))


def test_documents_are_added_up():
    rng = random.Random(0)
    one, other = (
        [[(k, m) for m in range(rng.randrange(1, 4))] for k in range(5)] for _ in range(2)
    )
    assert cluster_scores([one, other], [one, other]).value == 100
    assert cluster_scores([one, other], [one, []]).others["mention precision"] == 100
    assert cluster_scores([[]], [[]]).value == 0
    assert cluster_scores([one], [[]]).value == 0
    with pytest.raises(InputError, match="gold has 2 documents but predicted has 1"):
        cluster_scores([one, other], [one])
