"""Correlation of gold and predicted numbers, such as the similarity of two sentences.

A correlation with constant numbers is undefined, and so is one of fewer than two pairs. Here it is
0.0, because a model that predicts a constant has learned nothing about the order of the pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from elmokit.tasks.measures.paired_values import Numbers, paired_numbers
from elmokit.tasks.measures.scores import Scores


def correlation_scores(gold: Any, predicted: Any) -> Scores:
    """Scores of pairs of texts with one number each.

    Args:
        gold: The correct number of each pair; a list or an array (N,).
        predicted: The predicted number of each pair, in the same order.

    Returns:
        Pearson correlation, with Spearman correlation (both times 100) and the mean squared error
        (in squared units of the numbers).
    """
    x, y = paired_numbers(gold, predicted)
    return Scores(
        name="pearson",
        value=100 * pearson(x, y),
        others={"spearman": 100 * spearman(x, y), "mse": mean_squared_error(x, y)},
        n=len(x),
        unit="pairs",
    )


def pearson(x: Numbers, y: Numbers) -> float:
    """Pearson correlation of numbers (N,) and (N,), from -1 to 1; 0.0 if either is constant."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.clip(_standardised(x) @ _standardised(y), -1, 1))


def spearman(x: Numbers, y: Numbers) -> float:
    """Spearman correlation: Pearson correlation of ranks, where equal numbers share a rank."""
    return pearson(ranks(x), ranks(y))


def ranks(values: Numbers) -> Numbers:
    """Ranks (N,) from 1; equal numbers get the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def mean_squared_error(x: Numbers, y: Numbers) -> float:
    """Mean squared difference of numbers (N,) and (N,)."""
    return float(np.mean((x - y) ** 2))


def _standardised(values: Numbers) -> Numbers:
    """Numbers (N,), not all equal, as a vector of length 1 and mean 0."""
    centred = values - values.mean()
    centred /= np.abs(centred).max()  # the squares of tiny numbers are 0
    return centred / np.linalg.norm(centred)
