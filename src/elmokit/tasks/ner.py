"""Named entities: who, where, what; tags in the IOB2 scheme, decoded by a CRF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.io.lines import shown_path
from elmokit.tasks.marked_text import MarkedText
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.measures.spans import span_scores
from elmokit.tasks.measures.tag_schemes import detect_scheme, read_spans, to_iob2
from elmokit.tasks.readers.examples import TaggedExample
from elmokit.tasks.readers.tagged_words import read_tagged_examples
from elmokit.tasks.tagging import Tagged, Tagger, TaggerSettings
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining


class NerTagger(Tagger):
    """Finds names: a biLSTM with characters and a CRF.

    Examples:
        >>> from elmokit.tasks import NerTagger
        >>> ner = NerTagger.load("my-ner")             # doctest: +SKIP
        >>> ner("Angela Merkel visited Paris .").tags  # doctest: +SKIP
        ['B-PER', 'I-PER', 'O', 'B-LOC', 'O']
    """

    name = "ner"
    defaults = TaskSettings(
        TaggerSettings(),
        InputSettings(mix_l2=0.001, static_dropout=0.5),
        training=TaskTraining(epochs=30),
    )
    scheme = "iob2"

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[TaggedExample]:
        """Read sentences and tags in any common scheme, as IOB2; see docs/task-data.md."""
        examples = read_tagged_examples(path, columns, labelled=labelled, entities=labelled)
        return _in_iob2(examples, shown_path(path)) if labelled else examples

    @classmethod
    def labels_of(cls, examples: Sequence[TaggedExample]) -> list[str]:
        """Return O, and B- and I- of every type in alphabetical order."""
        types = sorted({tag[2:] for e in examples for tag in e.tags or [] if tag != "O"})
        if not types:
            raise InputError("the training examples have no entities; expected tags such as B-PER")
        return ["O", *(f"{place}-{kind}" if kind else place for kind in types for place in "BI")]

    def score(self, examples: Sequence[TaggedExample], predictions: Sequence[Tagged]) -> Scores:
        """F1 of whole entities, strict IOB2."""
        return span_scores([e.tags or [] for e in examples], [p.tags for p in predictions])

    def show(self, prediction: Tagged) -> str:
        """Return the sentence with its entities in brackets, as [Angela Merkel PER]."""
        return self.marked(prediction)[0].plain()

    def marked(self, prediction: Tagged) -> list[MarkedText]:
        """Return the sentence with its entities; each type has a colour."""
        return prediction.marked([label[2:] for label in self.labels[1::2]])

    def record(self, prediction: Tagged | None) -> dict[str, Any]:
        """Return words, tags and entities; ``end`` is the word after the last one."""
        prediction = prediction or Tagged([], [])
        entities = [
            {"start": start, "end": end, "type": kind, "words": prediction.words[start:end]}
            for start, end, kind in read_spans(prediction.tags)
        ]
        return super().record(prediction) | {"entities": entities}

    @classmethod
    def _examples(
        cls, given: Any, name: str, columns: dict[str, str] | None
    ) -> list[TaggedExample]:
        examples = super()._examples(given, name, columns)
        return examples if isinstance(given, str | Path) else _in_iob2(examples, name)


def _in_iob2(examples: Sequence[TaggedExample], name: str) -> list[TaggedExample]:
    """The examples with their tags in IOB2, from any scheme."""
    try:
        scheme = detect_scheme([example.tags or [] for example in examples])
    except InputError as error:
        raise InputError(f"{_place(examples, name)}: {error}") from None
    return [TaggedExample(e.words, to_iob2(e.tags or [], scheme)) for e in examples]


def _place(examples: Sequence[TaggedExample], name: str) -> str:
    """Where a tag is wrong: the sentence, or the whole file if its tags do not fit together."""
    for number, example in enumerate(examples, 1):
        try:
            detect_scheme([example.tags or []])
        except InputError:
            return f"sentence {number} of {name}"
    return name
