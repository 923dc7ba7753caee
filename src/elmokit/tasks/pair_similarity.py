"""Semantic similarity of two texts, as a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from elmokit.devices import to_device
from elmokit.errors import InputError
from elmokit.tasks.heads.encoders import BiLSTMEncoder
from elmokit.tasks.heads.pair import SiameseHead
from elmokit.tasks.heads.sentence_pooling import SentencePooling
from elmokit.tasks.measures.correlation import correlation_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.examples import PairExample
from elmokit.tasks.readers.sentence_pairs import read_pair_examples
from elmokit.tasks.task import Task
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.text_pairs import is_pair, two_texts
from elmokit.tasks.word_batches import Prepared
from elmokit.tasks.word_input import WordBatch
from elmokit.text.tokenizers import tokenize_one


@dataclass(frozen=True)
class SimilaritySettings:
    """The network of a similarity scorer."""

    hidden_dim: int = 200
    """Cells of each direction of its LSTM."""
    pair_dim: int = 100
    """Width of the layer that compares two texts."""
    dropout: float = 0.3
    """Dropout inside the network."""

    def __post_init__(self) -> None:
        check_model(
            self,
            [
                (1 <= self.pair_dim <= 1 << 16, "pair_dim", "1 or more"),
            ],
        )


class SimilarityNetwork(nn.Module):
    """The same encoder for both texts, and a comparison of their vectors.

    Args:
        input_dim: Width X of the input.
        output_dim: Width of what joins the LSTM's output; 0 for nothing.
        least: Lower end of the scale.
        most: Upper end of the scale.
        settings: Sizes.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        least: int,
        most: int,
        settings: SimilaritySettings,
    ) -> None:
        super().__init__()
        self.encoder = BiLSTMEncoder(input_dim, settings.hidden_dim)
        self.pooling = SentencePooling(2 * settings.hidden_dim + output_dim, ("max", "mean"))
        self.compare = SiameseHead(
            self.pooling.output_dim, settings.pair_dim, least, most, settings.dropout
        )

    def forward(self, x: Tensor, mask: Tensor, after: Tensor | None) -> Tensor:
        """Scores (B, points) of pairs, whose texts are adjacent rows of the input (2B, T, X)."""
        states = self.encoder(x, mask)
        if after is not None:
            states = torch.cat([states, after], -1)
        vectors = self.pooling(states, mask)
        scores: Tensor = self.compare(vectors[0::2], vectors[1::2])
        return scores


class SimilarityScorer(Task[PairExample, float]):
    """How similar two texts are: a siamese network (Tai et al. 2015).

    The scale goes from the lowest to the highest score of the training examples.

    Examples:
        >>> from elmokit.tasks import SimilarityScorer
        >>> scorer = SimilarityScorer.load("my-similarity")      # doctest: +SKIP
        >>> scorer(("A man sings .", "Someone is singing ."))    # doctest: +SKIP
        4.1
    """

    name = "similarity"
    example = PairExample
    defaults = TaskSettings(
        SimilaritySettings(),
        # the token layer beside the mix: words that both texts share have the same vector there
        InputSettings(vectors="token", dropout=0.0, static_dropout=0.0),
        training=TaskTraining(epochs=20),
    )

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[PairExample]:
        """Read pairs of texts and their scores; see docs/task-data.md."""
        return read_pair_examples(path, columns, labelled=labelled)

    @classmethod
    def labels_of(cls, examples: Sequence[PairExample]) -> list[str]:
        """Return the whole numbers of the scale, as text."""
        scores = [example.score for example in examples if example.score is not None]
        least, most = math.floor(min(scores, default=0)), math.ceil(max(scores, default=0))
        if most - least < 1 or most - least > 1000:
            raise InputError(
                f"the scores of the training examples go from {least} to {most}; expected a scale "
                "of at least 1 and at most 1,000 points, such as 0 to 5"
            )
        return [str(point) for point in range(least, most + 1)]

    def parse(self, given: Any) -> PairExample:
        """Return the example of two texts: a pair, or a string with a tab between them."""
        if isinstance(given, PairExample):
            return given
        return PairExample(*two_texts(given), None)

    def _is_one(self, given: Any) -> bool:
        return is_pair(given) or super()._is_one(given)

    def prepare(self, example: PairExample) -> Prepared:
        """Split both texts into words, each as one sentence."""
        split = self.elmo.tokenizer
        both = (example.first, example.second)
        return Prepared(example, [[tokenize_one(split, text)] for text in both])

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        least, most = int(self.labels[0]), int(self.labels[-1])
        return SimilarityNetwork(input_dim, output_dim, least, most, self.settings.model)

    def forward(self, batch: WordBatch) -> Tensor:
        """Scores (B, points)."""
        x, after = self.input(batch)
        scores: Tensor = self.head(x, batch.mask, after)
        return scores

    def loss(self, output: Tensor, examples: Sequence[PairExample]) -> Tensor:
        """Mean divergence from the gold similarities."""
        gold = to_device(torch.tensor([float(e.score or 0) for e in examples]), output.device)
        return self._compare.loss(output, gold).mean()

    def decode(self, output: Tensor, examples: Sequence[PairExample]) -> list[float]:
        """Return the expected similarity."""
        return [float(value) for value in self._compare.expectation(output).cpu()]

    def score(self, examples: Sequence[PairExample], predictions: Sequence[float]) -> Scores:
        """Pearson and Spearman correlation."""
        gold = [float(example.score or 0) for example in examples]
        return correlation_scores(gold, list(predictions))

    @property
    def _compare(self) -> SiameseHead:
        return cast(SimilarityNetwork, self.head).compare

    def show(self, prediction: float) -> str:
        """Return the similarity."""
        return f"{prediction:.3f}"

    def record(self, prediction: float | None) -> dict[str, Any]:
        """Return the similarity."""
        return {"score": prediction}
