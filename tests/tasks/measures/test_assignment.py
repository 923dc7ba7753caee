"""The assignment is as good as SciPy's."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from elmokit.tasks.measures.assignment import best_assignment


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (7, 4), (4, 7), (40, 40), (25, 60)])
@pytest.mark.parametrize("kind", ["real", "sparse", "ties"])
def test_the_sum_is_the_largest(shape, kind):
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape)
    if kind == "sparse":
        values = np.maximum(values - 1, 0)
    if kind == "ties":
        values = rng.integers(0, 3, shape).astype(float)
    rows, columns = best_assignment(values)
    assert rows == sorted(set(rows))
    assert len(set(columns)) == len(rows) == min(shape)
    best = values[linear_sum_assignment(values, maximize=True)].sum()
    assert values[rows, columns].sum() == pytest.approx(best)


def test_nothing_to_assign():
    assert best_assignment(np.zeros((0, 3))) == ([], [])
    assert best_assignment(np.zeros((3, 0))) == ([], [])
