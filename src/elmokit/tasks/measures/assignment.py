"""The best one-to-one assignment of rows to columns, by shortest augmenting paths."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def best_assignment(values: Numbers) -> tuple[list[int], list[int]]:
    """Assign rows to columns, one to one, with the largest sum of values.

    Written here because SciPy is no dependency; the tests compare it with
    ``scipy.optimize.linear_sum_assignment``.

    Args:
        values: What each pair is worth (R, C); finite numbers.

    Returns:
        The rows and their columns, min(R, C) of them, in the order of the rows.
    """
    if values.shape[0] > values.shape[1]:
        columns, rows = best_assignment(values.T)
        order = np.argsort(rows)
        return [rows[i] for i in order], [columns[i] for i in order]
    costs = values.max(initial=0.0) - values
    row_of = _row_of_each_column(costs)
    pairs = sorted((int(row), column) for column, row in enumerate(row_of) if row >= 0)
    return [row for row, _ in pairs], [column for _, column in pairs]


def _row_of_each_column(costs: Numbers) -> npt.NDArray[np.int64]:
    """The row (C,) of each column with the smallest sum of costs; -1 for none.

    Rows join one by one. Each takes the cheapest path to a free column, where costs are reduced by
    the potentials of rows and columns and never negative (Jonker and Volgenant, 1987).
    """
    n_rows, n_columns = costs.shape
    row_of = np.full(n_columns, -1, np.int64)
    of_rows, of_columns = np.zeros(n_rows), np.zeros(n_columns)
    for first in range(n_rows):
        lengths = np.full(n_columns, np.inf)
        before = np.full(n_columns, -1, np.int64)  # the column before it on the path
        done = np.zeros(n_columns, bool)
        row, column, length = first, -1, 0.0
        while True:
            reduced = length + costs[row] - of_rows[row] - of_columns
            shorter = ~done & (reduced < lengths)
            lengths[shorter], before[shorter] = reduced[shorter], column
            column = int(np.argmin(np.where(done, np.inf, lengths)))
            length = float(lengths[column])
            if row_of[column] < 0:
                break
            done[column] = True
            row = int(row_of[column])
        change = length - lengths[done]
        of_rows[row_of[done]] += change
        of_columns[done] -= change
        of_rows[first] += length
        while column >= 0:  # shift every row of the path to its next column
            previous = int(before[column])
            row_of[column] = first if previous < 0 else row_of[previous]
            column = previous
    return row_of
