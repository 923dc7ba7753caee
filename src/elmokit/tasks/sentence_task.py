"""What tasks about the words of a sentence share: the sentences of a text are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elmokit.tasks.long_texts import cut, split_words
from elmokit.tasks.task import Example, Prediction, Task
from elmokit.tasks.word_batches import Prepared


class SentenceTask(Task[Example, Prediction]):
    """A task whose examples are sentences, given as words.

    A text to predict for may have several. Each is predicted alone, as the model has learned from
    single sentences; so its time grows with the number of words, and not faster.
    """

    def parse(self, given: Any) -> Example:
        """Return the example of a text or of a list of tokens, which is one sentence."""
        if isinstance(given, self.example):
            return given
        words, lengths = split_words(given, self.elmo.tokenizer)
        found: Example = self.example(words, lengths=lengths)
        return found

    def prepare(self, example: Any) -> Prepared:
        """Take the words as they are."""
        return Prepared(example, [cut(example.words, example.lengths)])

    def pieces(self, item: Prepared, learning: bool = False) -> list[Prepared]:
        """Return each sentence of a text alone."""
        (sentences,) = item.texts
        if len(sentences) == 1:
            return [item]
        return [Prepared(self.example(list(words)), [[words]]) for words in sentences]


def sentence_record(lengths: Sequence[int]) -> dict[str, Any]:
    """Return how many words each sentence of a prediction has, for JSON; empty for one sentence."""
    return {"sentences": list(lengths)} if lengths else {}
