"""Labelling: one of a fixed set of labels for each example. Texts, relations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit.devices import to_device
from elmokit.errors import InputError
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import Displayed, Shown
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.task import Task


class _Labelled(Protocol):
    @property
    def label(self) -> str | None: ...


Example = TypeVar("Example", bound=_Labelled)


@dataclass(frozen=True)
class Label(Displayed):
    """The label that a model predicts for an example."""

    label: str
    probabilities: dict[str, float]
    """Probability of every label."""

    def _shown(self) -> Shown:
        likely = sorted(self.probabilities.items(), key=lambda pair: -pair[1])
        rows = [[label, f"{probability:.3f}"] for label, probability in likely]
        return Shown(html_table(Table(rows, ["label", "probability"])))


class LabelTask(Task[Example, Label]):
    """What all tasks share whose examples have a field ``label``. Their heads score the labels."""

    @classmethod
    def labels_of(cls, examples: Sequence[Example]) -> list[str]:
        """Return the labels in alphabetical order."""
        labels = sorted({example.label for example in examples if example.label is not None})
        if len(labels) < 2:
            raise InputError(
                f"the training examples have {len(labels)} label{'s' * (len(labels) != 1)}; "
                "expected two or more"
            )
        return labels

    @classmethod
    def _labels_in(cls, examples: Sequence[Example]) -> set[str]:
        return {example.label for example in examples if example.label is not None}

    def loss(self, output: Tensor, examples: Sequence[Example]) -> Tensor:
        """Cross entropy of scores (B, labels)."""
        number = {label: i for i, label in enumerate(self.labels)}
        gold = [number[label] for label in _labels(examples)]
        return F.cross_entropy(output, to_device(torch.tensor(gold), output.device))

    def decode(self, output: Tensor, examples: Sequence[Example]) -> list[Label]:
        """Return the label with the highest of the scores (B, labels), with all probabilities."""
        found = []
        for row in torch.softmax(output.float(), -1).cpu().tolist():
            shares = dict(zip(self.labels, row, strict=True))
            found.append(Label(max(shares, key=shares.__getitem__), shares))
        return found

    def score(self, examples: Sequence[Example], predictions: Sequence[Label]) -> Scores:
        """Compare the predicted labels with those of examples."""
        return self._label_scores(_labels(examples), [found.label for found in predictions])

    @abstractmethod
    def _label_scores(self, gold: list[str], predicted: list[str]) -> Scores:
        """Return the scores of this task."""

    def show(self, prediction: Label) -> str:
        """Return the label and its probability."""
        return f"{prediction.label} {prediction.probabilities[prediction.label]:.3f}"

    def record(self, prediction: Label | None) -> dict[str, Any]:
        """Return the label and all probabilities."""
        if prediction is None:
            return {"label": None, "probabilities": None}
        return {"label": prediction.label, "probabilities": prediction.probabilities}


def _labels(examples: Sequence[_Labelled]) -> list[str]:
    return [str(example.label) for example in examples]
