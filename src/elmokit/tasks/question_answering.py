"""Question answering: the part of a passage that answers a question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.devices import to_device
from elmokit.errors import InputError, shown
from elmokit.tasks.heads.bidaf import SpanNetwork, Text, best_spans, span_loss
from elmokit.tasks.heads.encoders import CharCNN
from elmokit.tasks.marked_text import Mark, Marked, MarkedText
from elmokit.tasks.measures.answers import answer_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.passages import PIECES, Passage, answer_words, split_passage, windows
from elmokit.tasks.readers.examples import QuestionExample
from elmokit.tasks.readers.questions import read_question_examples
from elmokit.tasks.task import Task
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.text_pairs import is_pair, two_texts
from elmokit.tasks.word_batches import Prepared
from elmokit.tasks.word_characters import BYTES, character_ids
from elmokit.tasks.word_input import WordBatch

_PASSAGES = 64  # the questions about a passage usually follow one another

split_once = lru_cache(_PASSAGES)(split_passage)


@dataclass(frozen=True)
class AnswererSettings:
    """The network of a question answerer."""

    hidden_dim: int = 90
    """Cells of each direction of its GRUs."""
    dropout: float = 0.2
    """Dropout inside the network."""
    character_filters: int = 50
    """Filters of its own character CNN; 0 for none."""
    window: int = 400
    """Most words of a passage that are read at once; a longer one is read in windows."""
    longest_answer: int = 17
    """Most words of an answer."""
    occurrences: Literal["given", "all"] = "given"
    """Where an answer is right in training: given, at its answer_start; all, wherever the passage
    has these words. An answer without answer_start is right everywhere."""

    def __post_init__(self) -> None:
        check_model(
            self,
            [
                (1 <= self.longest_answer <= 1 << 16, "longest_answer", "1 or more"),
                (
                    PIECES * self.longest_answer <= self.window <= 1 << 20,
                    "window",
                    f"at least {PIECES} times longest_answer",
                ),
            ],
        )


@dataclass(frozen=True)
class Answer(Marked):
    """The answer to a question: a part of its passage."""

    question: str
    passage: str
    start: int
    """Its first character in the passage."""
    end: int
    """The character after its last one."""
    score: float
    """Sum of the network's scores of the first and the last word."""
    total: float
    """The logarithm of what the scores of all words, first and last, add up to."""

    @property
    def text(self) -> str:
        """The answer, letter by letter as in the passage."""
        return self.passage[self.start : self.end]

    @property
    def probability(self) -> float:
        """Probability of its first word times that of its last word."""
        return min(1.0, math.exp(self.score - self.total))

    def marked(self, kinds: Sequence[str] = ()) -> list[MarkedText]:
        """Return the passage with the answer, after the question."""
        words = [self.passage[: self.start], self.text, self.passage[self.end :]]
        return [MarkedText(words, [Mark(1, 2, "", 0)], self.question, between="")]


class SpanScores(NamedTuple):
    """What the network says about a batch."""

    start: Tensor
    """Scores (B, T) of the first word."""
    end: Tensor
    """Scores (B, T) of the last word."""
    passages: Sequence[Passage]


class AnswererHead(nn.Module):
    """Characters, and the network that finds the answer.

    Args:
        input_dim: Width X of the input.
        output_dim: Width of what joins the states of the first GRU; 0 for nothing.
        settings: Sizes.
    """

    def __init__(self, input_dim: int, output_dim: int, settings: AnswererSettings) -> None:
        super().__init__()
        filters = settings.character_filters
        self.characters = CharCNN(BYTES, filters=filters, width=5) if filters else None
        self.spans = SpanNetwork(
            input_dim + filters, settings.hidden_dim, settings.dropout, output_dim
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        after: Tensor | None,
        lengths: Tensor,
        characters: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        """Scores (B, T) of first and last words of passages; a question is the row before each.

        Args:
            x: Input (2B, T, X).
            mask: True (2B, T) at words.
            after: What joins the states of the first GRU (2B, T, O), or None.
            lengths: Words of each row (2B,) on the CPU.
            characters: Characters (1, W, C) of distinct words, and the word (2B, T) at each place.
        """
        if self.characters is not None and characters is not None:
            ids, words = characters
            x = torch.cat([x, F.embedding(words, self.characters(ids).squeeze(0))], -1)
        texts = []
        for rows in (slice(0, None, 2), slice(1, None, 2)):
            # questions are much shorter than passages
            part = (rows, slice(max(1, int(lengths[rows].max()))))
            joins = None if after is None else after[part]
            texts.append(Text(x[part], mask[part], joins))
        scores: tuple[Tensor, Tensor] = self.spans(*texts)
        return scores


class QuestionAnswerer(Task[QuestionExample, Answer]):
    """Finds the part of a passage that answers a question: BiDAF with self-attention.

    Examples:
        >>> from elmokit.tasks import QuestionAnswerer
        >>> answerer = QuestionAnswerer.load("my-qa")                       # doctest: +SKIP
        >>> answerer(("Who wrote Emma?", "Jane Austen wrote Emma.")).text   # doctest: +SKIP
        'Jane Austen'
    """

    name = "qa"
    example = QuestionExample
    defaults = TaskSettings(
        AnswererSettings(),
        InputSettings(at="both", dropout=0.3, static_dropout=0.3),
        training=TaskTraining(epochs=5, batch_size=64, schedule="warmup", cache_gb=20),
    )

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[QuestionExample]:
        """Read questions, passages and answers; see docs/task-data.md."""
        return read_question_examples(path, columns, labelled=labelled)

    @classmethod
    def labels_of(cls, examples: Sequence[QuestionExample]) -> list[str]:
        """Return nothing: an answer is a part of its passage."""
        return []

    def parse(self, given: Any) -> QuestionExample:
        """Return the example of a question and a passage: a pair, or a string with a tab."""
        if isinstance(given, QuestionExample):
            return given
        return QuestionExample(*two_texts(given, "a question and a passage", tabs=True))

    def _is_one(self, given: Any) -> bool:
        return is_pair(given) or super()._is_one(given)

    def prepare(self, example: QuestionExample) -> Prepared:
        """Split the question and the passage into words, and find the answers among them."""
        model = self.settings.model
        try:
            words = self.elmo.tokenizer(example.question)[: model.window]
            if not words:
                raise InputError(
                    f"the tokenizer finds no word in the question {shown(example.question)}"
                )
            passage = split_once(example.passage, self.elmo.tokenizer, model.window // PIECES)
            answers = answer_words(example, passage, model.occurrences == "all")
        except InputError as error:
            raise InputError(f"question {example.id}: {error}" if example.id else error) from None
        passage = replace(passage, answers=answers)
        return Prepared(example, [[tuple(words)], passage.sentences], detail=passage)

    def pieces(self, item: Prepared, learning: bool = False) -> list[Prepared]:
        """Return the question with each window of its passage, or those that have an answer."""
        return [
            Prepared(item.example, [item.texts[0], window.sentences], detail=window)
            for window in windows(item.detail, self.settings.model.window)
            if window.answers or not learning
        ]

    def joined(self, predictions: Sequence[Answer]) -> Answer:
        """Return the best answer of all windows.

        Scores of different windows are compared as they are, before the softmax: a window without
        the answer has no high ones, but its probabilities add up to 1 as well.
        """
        best = max(predictions, key=lambda answer: answer.score)
        totals = torch.tensor([answer.total for answer in predictions], dtype=torch.float64)
        return replace(best, total=float(totals.logsumexp(0)))

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        return AnswererHead(input_dim, output_dim, self.settings.model)

    def forward(self, batch: WordBatch) -> SpanScores:
        """Scores (B, T) of the words of passages; the rows are a question and its passage each."""
        x, after = self.input(batch)
        filters = self.settings.model.character_filters
        characters = _distinct_words(batch) if filters else None
        start, end = self.head(x, batch.mask, after, batch.lengths, characters)
        return SpanScores(start, end, batch.details)

    def loss(self, output: SpanScores, examples: Sequence[QuestionExample]) -> Tensor:
        """Mean −log p(first word) − log p(last word), within the window."""
        right = torch.zeros(2, *output.start.shape, dtype=torch.bool)
        for row, passage in enumerate(output.passages):
            for first, last in passage.answers:
                right[0, row, first] = right[1, row, last] = True
        starts, ends = to_device(right, output.start.device)
        return (span_loss(output.start, starts) + span_loss(output.end, ends)).mean()

    def decode(self, output: SpanScores, examples: Sequence[QuestionExample]) -> list[Answer]:
        """Return the best span of each passage that is not too long."""
        longest = self.settings.model.longest_answer
        first, last, best = best_spans(output.start, output.end, longest)
        totals = output.start.logsumexp(1) + output.end.logsumexp(1)
        spans = torch.stack([first, last], 1).tolist()
        sums = torch.stack([best, totals], 1).tolist()
        found = []
        for example, passage, (a, b), (score, total) in zip(
            examples, output.passages, spans, sums, strict=True
        ):
            start, end = passage.places[a][0], passage.places[b][1]
            found.append(Answer(example.question, example.passage, start, end, score, total))
        return found

    def score(self, examples: Sequence[QuestionExample], predictions: Sequence[Answer]) -> Scores:
        """F1 and exact match, by the definition of SQuAD."""
        gold = [example.answer_texts for example in examples]
        return answer_scores(gold, [answer.text for answer in predictions])

    def show(self, prediction: Answer) -> str:
        """Return the answer on one line."""
        return " ".join(prediction.text.split())

    def marked(self, prediction: Answer) -> list[MarkedText]:
        """Return the passage with the answer, after the question."""
        return prediction.marked()

    def record(self, prediction: Answer | None) -> dict[str, Any]:
        """Return the answer, its characters in the passage, and its probability."""
        names = ("text", "start", "end", "probability")
        values = [None if prediction is None else getattr(prediction, name) for name in names]
        return dict(zip(("answer", *names[1:]), values, strict=True))


def _distinct_words(batch: WordBatch) -> tuple[Tensor, Tensor]:
    """Return the characters (1, W, C) of distinct words, and the word (B, T) at each place."""
    number: dict[str, int] = {"": 0}  # the padding
    places = np.zeros(batch.mask.shape, np.int64)
    for row, words in zip(places, batch.words, strict=True):
        row[: len(words)] = [number.setdefault(word, len(number)) for word in words]
    ids = character_ids([list(number)], len(number))
    device = batch.mask.device
    return to_device(ids, device), to_device(torch.from_numpy(places), device)
