"""The scores of a model on a data set: a main measure, others, per class, and a confusion matrix.

All values are in per cent, except those named in :data:`NOT_PER_CENT`. A measure that is undefined,
such as the precision of a class that was never predicted, is 0.0, as in scikit-learn with
``zero_division=0``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from elmokit.analysis.reports.report import fixed
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import Displayed, Shown

NOT_PER_CENT = frozenset({"mse"})
"""Measures in units of their own, shown with four decimal places."""

_WIDEST_HEADER = 40  # characters of all labels of a confusion matrix


def ratio(part: float, whole: float) -> float:
    """A share in per cent; 0.0 of nothing."""
    return 100 * part / whole if whole else 0.0


def mean(values: Sequence[float]) -> float:
    """The mean; 0.0 of nothing."""
    return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class, in per cent."""

    precision: float
    recall: float
    f1: float
    support: int
    """How often the class occurs in the gold data."""

    @classmethod
    def from_counts(cls, correct: int, predicted: int, gold: int) -> ClassScore:
        """Scores from counts.

        Args:
            correct: Correct predictions of the class.
            predicted: All predictions of the class.
            gold: Occurrences of the class in the gold data.
        """
        # 2PR / (P + R) in whole numbers; rounded once
        f1 = ratio(2 * correct, predicted + gold)
        return cls(ratio(correct, predicted), ratio(correct, gold), f1, gold)


@dataclass(frozen=True)
class Confusion:
    """How often each gold label was predicted as each label."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """One row per gold label, one column per predicted label."""

    @classmethod
    def count(
        cls, gold: Sequence[str], predicted: Sequence[str], last: str | None = None
    ) -> Confusion:
        """Count pairs of labels, which are sorted.

        Args:
            gold: Gold labels.
            predicted: As many predicted labels.
            last: A label that goes to the end, such as the one that means none.
        """
        labels = sorted({*gold, *predicted}, key=lambda label: (label == last, label))
        number = {label: k for k, label in enumerate(labels)}
        counts = np.zeros((len(labels), len(labels)), np.int64)
        rows = np.array([number[label] for label in gold], np.int64)
        columns = np.array([number[label] for label in predicted], np.int64)
        np.add.at(counts, (rows, columns), 1)
        return cls(tuple(labels), tuple(map(tuple, counts.tolist())))

    def per_class(self) -> dict[str, ClassScore]:
        """Scores of every label."""
        predicted = [sum(column) for column in zip(*self.counts, strict=True)]
        return {
            label: ClassScore.from_counts(row[k], predicted[k], sum(row))
            for k, (label, row) in enumerate(zip(self.labels, self.counts, strict=True))
        }


@dataclass(frozen=True, repr=False)
class Scores(Displayed):
    """The scores of a model on a data set."""

    name: str
    """The main measure, such as "accuracy"."""
    value: float
    """Its value in per cent."""
    others: Mapping[str, float]
    """Other measures by name."""
    n: int
    """How many units were scored."""
    unit: str = "examples"
    """What was counted: texts, tokens, sentences or pairs."""
    per_class: Mapping[str, ClassScore] = field(default_factory=dict)
    """Scores by label; empty if the task has no classes."""
    confusion: Confusion | None = None
    """Which labels were taken for which; None if the task has no classes."""

    def to_dict(self) -> dict[str, Any]:
        """All scores as plain values for JSON."""
        confusion = None
        if self.confusion is not None:
            counts = [list(row) for row in self.confusion.counts]
            confusion = {"labels": list(self.confusion.labels), "counts": counts}
        return {
            "name": self.name,
            "value": self.value,
            "others": dict(self.others),
            "n": self.n,
            "unit": self.unit,
            "per_class": {label: asdict(score) for label, score in self.per_class.items()},
            "confusion": confusion,
        }

    def summary_rows(self) -> list[list[str]]:
        """A table of the measures: a header, the main measure, the others, and the size."""
        rows = [[name, _shown(name, value)] for name, value in self._all().items()]
        return [["measure", "value"], *rows, [self.unit, f"{self.n:,}"]]

    def class_rows(self) -> list[list[str]]:
        """A table of the classes: a header and one row per class."""
        rows = [
            [label, *(fixed(x, 2) for x in (s.precision, s.recall, s.f1)), f"{s.support:,}"]
            for label, s in self.per_class.items()
        ]
        return [["class", "precision", "recall", "f1", "support"], *rows]

    def confusion_rows(self) -> list[list[str]]:
        """The confusion matrix as a table: a header and one row per gold label.

        Where the labels are too long for a header, they are numbered.
        """
        header = "gold \\ predicted"
        if self.confusion is None:
            return [[header]]
        labels, heads = self.confusion.labels, list(self.confusion.labels)
        if sum(map(len, labels)) > _WIDEST_HEADER:
            heads = [str(k) for k in range(1, len(labels) + 1)]
            labels = tuple(f"{k} {label}" for k, label in zip(heads, labels, strict=True))
        pairs = zip(labels, self.confusion.counts, strict=True)
        rows = [[label, *(f"{count:,}" for count in row)] for label, row in pairs]
        return [[header, *heads], *rows]

    def _shown(self) -> Shown:
        tables = [self.summary_rows()]
        if self.per_class:
            tables.append(self.class_rows())
        if self.confusion is not None:
            tables.append(self.confusion_rows())
        return Shown("\n".join(html_table(Table(rows, head)) for head, *rows in tables))

    def __repr__(self) -> str:
        values = (f"{name} {_shown(name, value)}" for name, value in self._all().items())
        return f"Scores({', '.join(values)}, {self.n:,} {self.unit})"

    def _all(self) -> dict[str, float]:
        return {self.name: self.value, **self.others}


def _shown(name: str, value: float) -> str:
    return fixed(value, 4 if name in NOT_PER_CENT else 2)
