"""Softmax regression with an L2 penalty that is chosen on held-out examples.

Used by zh.py. The probe in elmokit.analysis.probes stops early instead of choosing a penalty, and
reads no sparse features such as TF-IDF.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit.io.progress import DelayedProgress

PENALTIES = [10.0**k for k in range(-1, -7, -1)]
_ITERATIONS = 100


class Sparse:
    """A sparse matrix (N, S).

    PyTorch's own are slow (COO) or in beta (CSR).

    Args:
        rows: The values of each row by column.
        n_columns: Number of columns S.
    """

    def __init__(self, rows: Sequence[dict[int, float]], n_columns: int) -> None:
        self.n_columns = n_columns
        self._by_row = _bags(rows)
        by_column: list[dict[int, float]] = [{} for _ in range(n_columns)]
        for number, row in enumerate(rows):
            for column, value in row.items():
                by_column[column][number] = value
        self._by_column = _bags(by_column)

    def product(self, other: Tensor) -> Tensor:
        """This matrix times another (S, C)."""
        return _sum_bags(self._by_row, other)

    def transposed_product(self, other: Tensor) -> Tensor:
        """This matrix, transposed, times another (N, C)."""
        return _sum_bags(self._by_column, other)


_Bags = tuple[Tensor, Tensor, Tensor]  # columns, where each row starts, values


def _bags(rows: Sequence[dict[int, float]]) -> _Bags:
    columns = torch.tensor([column for row in rows for column in row], dtype=torch.long)
    starts = torch.tensor([0, *accumulate(map(len, rows))][:-1])
    return columns, starts, torch.tensor([value for row in rows for value in row.values()])


def _sum_bags(bags: _Bags, other: Tensor) -> Tensor:
    columns, starts, values = bags
    return F.embedding_bag(
        columns, other.contiguous(), starts, mode="sum", per_sample_weights=values
    )


def sparse_parts(parts: Sequence[Sequence[Mapping[Any, float]]]) -> list[Sparse]:
    """Turn features by name into matrices; names that the first part lacks are left out."""
    names = dict.fromkeys(name for row in parts[0] for name in row)
    columns = {name: column for column, name in enumerate(names)}
    return [
        Sparse(
            [{columns[name]: x for name, x in row.items() if name in columns} for row in part],
            len(columns),
        )
        for part in parts
    ]


@dataclass(frozen=True)
class Features:
    """Features of N examples: dense ones, sparse ones, or both."""

    dense: Tensor = field(default_factory=lambda: torch.zeros(1, 0))
    """(N, D), or (T, D) with ``rows``."""
    sparse: Sparse | None = None
    """(N, S)."""
    rows: Tensor | None = None
    """The row of ``dense`` of each example (N,) in ascending order, where examples share rows."""

    @property
    def width(self) -> int:
        """Number of features D + S."""
        return self.dense.shape[1] + (self.sparse.n_columns if self.sparse else 0)

    def scores(self, weights: Tensor) -> Tensor:
        """Scores (N, C) of classes by weights (C, width + 1); the last column is the bias."""
        n_dense = self.dense.shape[1]
        dense, sparse, bias = torch.split(weights, [n_dense, self.width - n_dense, 1], 1)
        total = F.linear(self.dense, dense, bias[:, 0])
        if self.rows is not None:
            total = total[self.rows]
        return total + self.sparse.product(sparse.T) if self.sparse else total

    def gradient(self, errors: Tensor) -> Tensor:
        """Sums (C, width + 1) of each feature times errors (N, C)."""
        by_row = errors
        if self.rows is not None:
            starts = torch.searchsorted(self.rows, torch.arange(len(self.dense)))
            by_row = F.embedding_bag(torch.arange(len(errors)), errors, starts, mode="sum")
        dense = by_row.T @ self.dense if self.dense.shape[1] else errors[:0].T
        sparse = self.sparse.transposed_product(errors).T if self.sparse else errors[:0].T
        return torch.cat([dense, sparse, errors.sum(0)[:, None]], 1)


def train(
    features: Features,
    labels: Tensor,
    n_classes: int,
    score: Callable[[Tensor], float],
    what: str,
    penalties: Sequence[float] = PENALTIES,
) -> Tensor:
    """Fit with each penalty, and return the weights (C, width + 1) with the best score.

    Args:
        features: Features of N training examples.
        labels: Their classes (N,).
        n_classes: Number of classes C.
        score: Score of weights on held-out examples; higher is better.
        what: Name of the features, for the progress bar.
        penalties: Penalties from strong to weak; each fit starts from the weights of the last.
    """
    weights = torch.zeros(n_classes, features.width + 1)
    best, best_weights = float("-inf"), weights
    with DelayedProgress(f"training on {what}", len(penalties), "penalties") as bar:
        for penalty in penalties:
            weights = fit(features, labels, penalty, weights)
            found = score(weights)
            bar.advance(1)
            if found > best:
                best, best_weights = found, weights
    return best_weights


@torch.no_grad()
def fit(features: Features, labels: Tensor, penalty: float, start: Tensor) -> Tensor:
    """Minimise the mean cross-entropy plus the penalty times the sum of squared weights."""
    weights = start.clone()
    optimizer = torch.optim.LBFGS([weights], max_iter=_ITERATIONS, line_search_fn="strong_wolfe")
    right = F.one_hot(labels, len(start)).float()

    def loss() -> Tensor:
        logs = torch.log_softmax(features.scores(weights), 1)
        gradient = features.gradient((logs.exp() - right) / len(right))
        gradient[:, :-1] += 2 * penalty * weights[:, :-1]
        weights.grad = gradient
        return -(logs * right).sum() / len(right) + penalty * weights[:, :-1].square().sum()

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weights


def accuracy(features: Features, labels: Tensor, weights: Tensor) -> float:
    """Accuracy in per cent."""
    return 100 * (features.scores(weights).argmax(1) == labels).double().mean().item()


def standardised(train: Tensor, *others: Tensor) -> list[Tensor]:
    """Shift and scale arrays (N, D) to mean 0 and variance 1 on the first of them."""
    std, mean = torch.std_mean(train, 0, correction=0)
    return [(array - mean) / std.clamp_min(1e-6) for array in (train, *others)]
