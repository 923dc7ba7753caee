"""Correlations, by hand and against scipy."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from elmokit.errors import InputError
from elmokit.tasks.measures.correlation import correlation_scores, pearson, ranks, spearman

NUMBERS = st.one_of(st.integers(-5, 5).map(float), st.floats(-100, 100, width=16))
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30)


def test_by_hand():
    scores = correlation_scores([1, 2, 3, 4], [1, 3, 2, 6])
    # means 2.5 and 3; sum of products 7; sums of squares 5 and 14
    assert scores.name == "pearson"
    assert scores.value == pytest.approx(100 * 7 / (5 * 14) ** 0.5)
    # ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15)
    assert scores.others["spearman"] == pytest.approx(80)
    assert scores.others["mse"] == (0 + 1 + 1 + 4) / 4
    assert (scores.n, scores.unit) == (4, "pairs")


def test_equal_numbers_share_a_rank():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [4, 1, 4, 2, 4]


@given(PAIRS)
def test_against_scipy(pairs):
    x, y = np.array(pairs).T
    assume(np.ptp(x) > 1e-3 and np.ptp(y) > 1e-3)
    scores = correlation_scores(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nearly constant numbers
        expected = stats.pearsonr(x, y).statistic
        expected_ranks = stats.spearmanr(x, y).statistic
    assert scores.value == pytest.approx(100 * expected, abs=1e-7)
    assert scores.others["spearman"] == pytest.approx(100 * expected_ranks, abs=1e-7)
    assert ranks(x).tolist() == stats.rankdata(x).tolist()


@pytest.mark.parametrize("values", [[0.1] * 7, [5.0], [0.0, 0.0]])
def test_constant_numbers_have_no_correlation(values):
    other = list(range(len(values)))
    for pair in ((values, other), (other, values), (values, values)):
        scores = correlation_scores(*pair)
        assert scores.value == 0
        assert scores.others["spearman"] == 0
    assert correlation_scores(values, values).others["mse"] == 0


def test_extreme_numbers():
    x = np.array([1.0, 2.0, 4.0])
    assert pearson(x * 1e-200, x * 1e29) == pytest.approx(1)
    assert spearman(x * 1e-200, -x) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([], [], "empty; expected at least one of the numbers"),
        ([1, 2], [1], "gold has 2 numbers but predicted has 1"),
        ([1, float("nan")], [1, 2], "each of gold must be a number"),
        ([1, 2], [1, "2"], "each of predicted must be a number"),
        (1, [1], "gold must be a list of numbers"),
    ],
)
def test_mistakes(gold, predicted, message):
    with pytest.raises(InputError, match=message):
        correlation_scores(gold, predicted)
