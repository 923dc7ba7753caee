"""Natural language inference: whether a hypothesis follows from a premise."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from elmokit.errors import DataWarning, InputError
from elmokit.tasks.frozen_layers import FrozenLayers
from elmokit.tasks.heads.esim import ESIM, attention
from elmokit.tasks.labelling import LabelTask
from elmokit.tasks.long_texts import text_sentences
from elmokit.tasks.measures.accuracy import label_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.entailment_pairs import read_entailment_examples
from elmokit.tasks.readers.examples import EntailmentExample, Words
from elmokit.tasks.task import source_name
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.text_pairs import is_pair, two_texts
from elmokit.tasks.word_attention import WordAttention
from elmokit.tasks.word_batches import Batcher, Prepared
from elmokit.tasks.word_input import WordBatch

NO_ANSWER = "-"
"""The label of a pair whose annotators did not agree, in SNLI, MultiNLI and OCNLI."""


@dataclass(frozen=True)
class EntailmentSettings:
    """The network of an entailment classifier."""

    hidden_dim: int = 200
    """Cells of each direction of its LSTMs."""
    dropout: float = 0.5
    """Dropout inside the network."""
    most_words: int = 400
    """A longer text is cut: its first and its last sentences stay."""

    def __post_init__(self) -> None:
        check_model(
            self,
            [
                (1 <= self.most_words <= 4096, "most_words", "from 1 to 4,096"),
            ],
        )


class EntailmentClassifier(LabelTask[EntailmentExample]):
    """Whether a hypothesis follows from a premise, contradicts it, or neither: ESIM.

    Labels are in lower case, whatever their case in a file. Examples without an answer, whose label
    is ``-``, are left out of training and evaluation with a warning.

    Examples:
        >>> from elmokit.tasks import EntailmentClassifier
        >>> nli = EntailmentClassifier.load("my-nli")                      # doctest: +SKIP
        >>> nli(("A man is playing a guitar.", "A man plays music.")).label  # doctest: +SKIP
        'entailment'
    """

    name = "nli"
    example = EntailmentExample
    defaults = TaskSettings(
        EntailmentSettings(),
        InputSettings(at="both", dropout=0.0, static_dropout=0.0),
        training=TaskTraining(epochs=20),
    )

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[EntailmentExample]:
        """Read pairs of texts and their labels; see docs/task-data.md."""
        return read_entailment_examples(path, columns, labelled=labelled)

    @classmethod
    def _examples(
        cls, given: Any, name: str, columns: dict[str, str] | None
    ) -> list[EntailmentExample]:
        """Return the examples that have an answer, with labels in lower case."""
        found = [
            replace(example, label=str(example.label).lower())
            for example in super()._examples(given, name, columns)
        ]
        missing = _no_answers(str(example.label) for example in found)
        answered = [example for example in found if example.label not in missing]
        where = source_name(given, name)
        if not answered:
            raise InputError(f"no example of {where} has an answer; all labels are {NO_ANSWER}")
        if left_out := len(found) - len(answered):
            warnings.warn(
                f"left out {left_out:,} of {len(found):,} examples in {where}: no gold label "
                f"({' or '.join(sorted(missing))})",
                DataWarning,
                stacklevel=3,
            )
        return answered

    def parse(self, given: Any) -> EntailmentExample:
        """Return the example of a premise and a hypothesis: a pair, or a string with a tab."""
        if isinstance(given, EntailmentExample):
            return given
        premise, hypothesis = two_texts(given)
        for name, text in (("premise", premise), ("hypothesis", hypothesis)):
            if not (text.strip() if isinstance(text, str) else text):
                raise InputError(f"the {name} is empty; expected two texts")
        return EntailmentExample(premise, hypothesis, None)

    def _is_one(self, given: Any) -> bool:
        return is_pair(given) or super()._is_one(given)

    def prepare(self, example: EntailmentExample) -> Prepared:
        """Split both texts into sentences, without those in the middle if it is too long."""
        most = self.settings.model.most_words
        both = (example.premise, example.hypothesis)
        return Prepared(example, [text_sentences(t, self.elmo.tokenizer, most) for t in both])

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        model = self.settings.model
        return ESIM(input_dim, model.hidden_dim, len(self.labels), model.dropout, output_dim)

    def forward(self, batch: WordBatch) -> Tensor:
        """Scores (B, labels)."""
        x, after = self.input(batch)
        scores: Tensor = self.head(x, batch.mask, after)
        return scores

    def _label_scores(self, gold: list[str], predicted: list[str]) -> Scores:
        """Accuracy, macro F1, per label, confusion."""
        return label_scores(gold, predicted, "pairs")

    @torch.no_grad()
    def attention(self, premise: Words, hypothesis: Words) -> WordAttention:
        """Return how much each word of a hypothesis looks at each word of its premise.

        Args:
            premise: A text, or its tokens.
            hypothesis: Another one.
        """
        prepared = self.prepare(self.parse((premise, hypothesis)))
        head = cast(ESIM, self.head)
        self.network.eval()
        with FrozenLayers(self.elmo, self.input.layers) as layers:
            batch = Batcher(self.input, layers, None, self.elmo.device).make([prepared])
            x, after = self.input(batch)
            states = head.states(x, batch.mask, after)
            (prediction,) = self.decode(head(x, batch.mask, after), [prepared.example])
        weights = attention(states[1:], states[:1], batch.mask[:1])[0].cpu().numpy()
        first, second = batch.words
        shares = weights[: len(second), : len(first)]
        return WordAttention(first, second, shares, self.show(prediction))


def _no_answers(labels: Iterable[str]) -> set[str]:
    """The labels that mean no answer: ``-``, and -1 beside 0, 1 and 2, as on Hugging Face."""
    found = set(labels)
    return found & {NO_ANSWER, *(["-1"] if {"0", "1", "2"} <= found else [])}
