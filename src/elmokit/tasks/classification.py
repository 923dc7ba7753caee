"""Text classification: sentiment, topics, questions; one label per text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from elmokit.tasks.heads.attentive import AttentiveClassifier
from elmokit.tasks.heads.biattentive import BiattentiveClassifier
from elmokit.tasks.labelling import LabelTask
from elmokit.tasks.long_texts import text_sentences
from elmokit.tasks.measures.accuracy import label_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.examples import TextExample
from elmokit.tasks.readers.labelled_texts import read_text_examples
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.word_batches import Prepared
from elmokit.tasks.word_input import WordBatch


@dataclass(frozen=True)
class ClassifierSettings:
    """The network of a classifier."""

    network: Literal["attentive", "biattentive"] = "attentive"
    """attentive: a biLSTM with attention. biattentive: the network of McCann et al. (2017), which
    the ELMo paper uses; slower."""
    hidden_dim: int = 150
    """Cells of each direction of its LSTMs."""
    dropout: float = 0.3
    """Dropout inside the network."""
    most_words: int = 400
    """A longer text is cut: its first and its last sentences stay."""

    def __post_init__(self) -> None:
        check_model(
            self,
            [
                (self.most_words >= 1, "most_words", "1 or more"),
            ],
        )


class TextClassifier(LabelTask[TextExample]):
    """One label for each text: a biLSTM with attention over its states.

    Examples:
        >>> from elmokit.tasks import TextClassifier
        >>> classifier = TextClassifier.load("my-sentiment")     # doctest: +SKIP
        >>> classifier("A charming film .").label                # doctest: +SKIP
        'positive'
    """

    name = "classify"
    example = TextExample
    defaults = TaskSettings(ClassifierSettings(), InputSettings(), training=TaskTraining(epochs=20))

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[TextExample]:
        """Read texts and labels; see docs/task-data.md."""
        return read_text_examples(path, columns, labelled=labelled)

    def parse(self, given: Any) -> TextExample:
        """Return the example of a text: a string, or a list of tokens."""
        return given if isinstance(given, TextExample) else TextExample(given, None)

    def prepare(self, example: TextExample) -> Prepared:
        """Split a text into sentences, without those in the middle if it is too long."""
        most = self.settings.model.most_words
        return Prepared(example, [text_sentences(example.text, self.elmo.tokenizer, most)])

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        model = self.settings.model
        kind = AttentiveClassifier if model.network == "attentive" else BiattentiveClassifier
        return kind(input_dim, model.hidden_dim, len(self.labels), model.dropout, output_dim)

    def forward(self, batch: WordBatch) -> Tensor:
        """Scores (B, labels)."""
        x, after = self.input(batch)
        scores: Tensor = self.head(x, batch.mask, after)
        return scores

    def _label_scores(self, gold: list[str], predicted: list[str]) -> Scores:
        """Accuracy, macro F1, per label, confusion."""
        return label_scores(gold, predicted)
