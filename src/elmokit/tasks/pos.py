"""Parts of speech: a tag for every word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmokit.tasks.measures.accuracy import tag_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.examples import TaggedExample
from elmokit.tasks.readers.tagged_words import read_tagged_examples
from elmokit.tasks.tagging import Tagged, Tagger, TaggerSettings
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining


class PosTagger(Tagger):
    """Tags every word, with parts of speech or anything else: a biLSTM with characters."""

    name = "pos"
    defaults = TaskSettings(
        TaggerSettings(), InputSettings(static_dropout=0.5), training=TaskTraining(epochs=20)
    )
    scheme = None

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[TaggedExample]:
        """Read sentences and tags; see docs/task-data.md."""
        return read_tagged_examples(path, columns, labelled=labelled, upos=True)

    @classmethod
    def labels_of(cls, examples: Sequence[TaggedExample]) -> list[str]:
        """Return the tags in alphabetical order."""
        return sorted({tag for example in examples for tag in example.tags or []})

    def score(self, examples: Sequence[TaggedExample], predictions: Sequence[Tagged]) -> Scores:
        """Accuracy of tags."""
        return tag_scores([e.tags or [] for e in examples], [p.tags for p in predictions])
