"""Relation classification: how two marked entities of a sentence are related."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.devices import to_device
from elmokit.io.lines import STANDARD_INPUT
from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.encoders import BiLSTMEncoder
from elmokit.tasks.heads.entity_attention import EntityAttention
from elmokit.tasks.labelling import LabelTask
from elmokit.tasks.measures.relation_scores import relation_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.examples import RelationExample
from elmokit.tasks.readers.records import Source
from elmokit.tasks.readers.relations import (
    parse_marked,
    read_relation_examples,
    relation_words,
)
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.word_batches import Prepared
from elmokit.tasks.word_input import WordBatch


@dataclass(frozen=True)
class RelationSettings:
    """The network of a relation classifier."""

    hidden_dim: int = 200
    """Cells of each direction of its LSTM, and width of its other layers."""
    dropout: float = 0.5
    """Dropout inside the network."""

    def __post_init__(self) -> None:
        check_model(self)


class RelationHead(nn.Module):
    """A biLSTM, and attention to the two entities.

    Args:
        input_dim: Width X of the input.
        output_dim: Width of what joins the LSTM's output; 0 for nothing.
        n_labels: K.
        settings: Sizes.
    """

    def __init__(
        self, input_dim: int, output_dim: int, n_labels: int, settings: RelationSettings
    ) -> None:
        super().__init__()
        width = settings.hidden_dim
        # which entity a word belongs to: neither, the first, the second
        self.marks = nn.Embedding(3, 10)
        self.encoder = BiLSTMEncoder(input_dim + 10, width)
        self.dropout = Dropout(settings.dropout)
        self.attention = EntityAttention(2 * width + output_dim, width, n_labels, settings.dropout)

    def forward(
        self, x: Tensor, mask: Tensor, after: Tensor | None, first: Tensor, second: Tensor
    ) -> Tensor:
        """Scores (B, K) of an input (B, T, X) with entities (B, T), True at their words."""
        marks = self.marks(first.long() + 2 * (second & ~first).long())
        states = self.dropout(self.encoder(torch.cat([x, marks], -1), mask))
        if after is not None:
            states = torch.cat([states, after], -1)
        scores: Tensor = self.attention(states, mask, first, second)
        return scores


class RelationClassifier(LabelTask[RelationExample]):
    """The relation between two entities, marked as ``<e1>…</e1>`` and ``<e2>…</e2>``.

    Examples:
        >>> from elmokit.tasks import RelationClassifier
        >>> relations = RelationClassifier.load("my-relations")                # doctest: +SKIP
        >>> relations("The <e1>fire</e1> was caused by a <e2>spark</e2>.").label  # doctest: +SKIP
        'Cause-Effect(e2,e1)'
    """

    name = "relation"
    example = RelationExample
    defaults = TaskSettings(RelationSettings(), InputSettings(), training=TaskTraining(epochs=20))

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[RelationExample]:
        """Read sentences with marked entities and labels; see docs/task-data.md."""
        return read_relation_examples(path, columns, labelled=labelled)

    @classmethod
    def is_table(cls, path: Path, columns: dict[str, str] | None = None) -> bool:
        """Rows are also known by a tab in the first line, as in the files of SemEval."""
        if super().is_table(path, columns):
            return True
        return path != STANDARD_INPUT and "\t" in Source(path).first

    def parse(self, given: Any) -> RelationExample:
        """Return the example of a text with marked entities."""
        return given if isinstance(given, RelationExample) else parse_marked(given)

    def prepare(self, example: RelationExample) -> Prepared:
        """Split the sentence into words, and find those of both entities."""
        words, first, second = relation_words(example, self.elmo.tokenizer)
        return Prepared(example, [[words]], (first, second))

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        return RelationHead(input_dim, output_dim, len(self.labels), self.settings.model)

    def forward(self, batch: WordBatch) -> Tensor:
        """Scores (B, labels)."""
        entities = torch.zeros((2, *batch.mask.shape), dtype=torch.bool)
        for row, spans in enumerate(batch.places):
            for entity, (start, end) in zip(entities, spans, strict=True):
                entity[row, start:end] = True
        x, after = self.input(batch)
        first, second = to_device(entities, x.device)
        scores: Tensor = self.head(x, batch.mask, after, first, second)
        return scores

    def _label_scores(self, gold: list[str], predicted: list[str]) -> Scores:
        """Macro F1 of the relations, direction counted, without Other."""
        return relation_scores(gold, predicted)
