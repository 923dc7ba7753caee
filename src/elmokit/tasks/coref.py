"""Coreference: which words of a document mean the same person or thing."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.arguments import each, strings, wrong
from elmokit.devices import to_device
from elmokit.errors import InputError
from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.encoders import BiLSTMEncoder, CharCNN
from elmokit.tasks.heads.span_ranking import (
    SpanRanker,
    SpanScores,
    clusters_of,
    mention_loss,
    ranking_loss,
)
from elmokit.tasks.marked_text import Mark, Marked, MarkedText
from elmokit.tasks.measures.cluster_scores import cluster_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.documents import read_document_examples
from elmokit.tasks.readers.examples import DocumentExample
from elmokit.tasks.readers.records import table_kind, unpacked_suffix
from elmokit.tasks.task import Task
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.word_batches import Prepared
from elmokit.tasks.word_characters import BYTES, character_ids
from elmokit.tasks.word_input import Sentences, WordBatch
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import Span

_ROW = 100  # words; sentences share a row up to this length
_LONGEST = 250  # words of a sentence; a longer one is cut
_CLUSTER, _SINGLETON = "cluster", "singleton"
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class CorefSettings:
    """The network of a coreference resolver."""

    hidden_dim: int = 200
    """Cells of each direction of its LSTM."""
    n_layers: int = 1
    """Layers of its LSTM."""
    span_dim: int = 150
    """Width of the vector of a span, and of the layer that compares two."""
    dropout: float = 0.3
    """Dropout inside the network."""
    character_filters: int = 30
    """Filters of its own character CNN; 0 for none."""
    max_width: int = 15
    """Most words of a mention."""
    spans_per_word: float = 0.4
    """λ: how many spans per word are compared with others; at least 20 in all."""
    antecedents: int = 50
    """Most antecedents that a span is compared with."""
    train_sentences: int = 50
    """Most sentences of a document in a training step, a random part of it."""

    def __post_init__(self) -> None:
        check_model(
            self,
            [
                (1 <= self.span_dim <= 1 << 16, "span_dim", "1 or more"),
                (1 <= self.max_width <= _LONGEST, "max_width", f"from 1 to {_LONGEST}"),
                (0 < self.spans_per_word <= 10, "spans_per_word", "above 0, at most 10"),
                (1 <= self.antecedents <= 1 << 16, "antecedents", "1 or more"),
                (1 <= self.train_sentences <= 1 << 30, "train_sentences", "1 or more"),
            ],
        )


@dataclass(frozen=True)
class Resolved(Marked):
    """A document and the clusters that a model found in it."""

    sentences: list[list[str]]
    clusters: list[list[Span]]
    """Mentions (start, end) of each entity, as in :class:`DocumentExample`; in their order."""
    name: str = ""

    def marked(self, kinds: Sequence[str] = ()) -> list[MarkedText]:
        """Return the sentences with their mentions; each cluster has a number and a colour."""
        mentions = sorted(
            (start, end, number)
            for number, cluster in enumerate(self.clusters)
            for start, end in cluster
        )
        texts: list[MarkedText] = []
        k = 0
        for start, end in _places(self.sentences):
            marks = []
            while k < len(mentions) and mentions[k][0] < end:
                a, b, number = mentions[k]
                marks.append(Mark(a - start, b - start, str(number + 1), number))
                k += 1
            title = self.name if not texts else ""
            texts.append(MarkedText(self.sentences[len(texts)], marks, title))
        return texts


class CorefHead(nn.Module):
    """Characters, a biLSTM over sentences, and the ranking of spans.

    Args:
        input_dim: Width X of the input.
        output_dim: Width of what joins the LSTM's output; 0 for nothing.
        settings: Sizes.
    """

    def __init__(self, input_dim: int, output_dim: int, settings: CorefSettings) -> None:
        super().__init__()
        filters, width = settings.character_filters, settings.hidden_dim
        self.characters = CharCNN(BYTES, filters=filters) if filters else None
        input_dim += filters
        self.encoder = BiLSTMEncoder(input_dim, width, settings.n_layers, settings.dropout)
        self.dropout = Dropout(settings.dropout)
        self.ranker = SpanRanker(
            2 * width + output_dim,
            input_dim,
            settings.span_dim,
            settings.max_width,
            settings.spans_per_word,
            settings.antecedents,
            settings.dropout,
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        after: Tensor | None,
        characters: Tensor | None,
        slots: Tensor,
        documents: Sequence[Sequence[Span]],
    ) -> list[SpanScores]:
        """Scores of each document.

        Args:
            x: Input (B, T, X). The words of a document are in adjacent rows.
            mask: True (B, T) at words.
            after: What joins the LSTM's output (B, T, D), or None.
            characters: Characters (B, T, C), or None.
            slots: Where the words are (N,), as numbers row · T + column.
            documents: Words (start, end) of the sentences of each document.
        """
        if self.characters is not None and characters is not None:
            x = torch.cat([x, self.dropout(self.characters(characters))], -1)
        states = self.dropout(self.encoder(x, mask))
        if after is not None:
            states = torch.cat([states, after], -1)
        lengths = [sentences[-1][1] for sentences in documents]
        # by their numbers: a mask would make the CPU wait for the GPU
        states, x = (rows.flatten(0, 1).index_select(0, slots) for rows in (states, x))
        parts = (torch.split(states, lengths), torch.split(x, lengths), documents)
        return [self.ranker(*document) for document in zip(*parts, strict=True)]


class CoreferenceResolver(Task[DocumentExample, Resolved]):
    """Finds mentions and puts those of the same entity together.

    A document is a string, or a list of sentences, each a list of words.

    Examples:
        >>> from elmokit.tasks import CoreferenceResolver
        >>> coref = CoreferenceResolver.load("my-coref")            # doctest: +SKIP
        >>> found = coref("The old man put on his hat. He left.")   # doctest: +SKIP
        >>> print(coref.show(found))                                # doctest: +SKIP
        [The old man 1] put on [his 1] hat .
        [He 1] left .
    """

    name = "coref"
    example = DocumentExample
    defaults = TaskSettings(
        CorefSettings(),
        InputSettings(static_dropout=0.5),
        training=TaskTraining(epochs=40, patience=10, batch_size=1),
    )
    whole_files = True
    predicted_at_once = 4

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[DocumentExample]:
        """Read documents and their clusters; see docs/task-data.md."""
        return read_document_examples(path, columns, labelled=labelled)

    @classmethod
    def is_table(cls, path: Path, columns: dict[str, str] | None = None) -> bool:
        """Documents with given sentences: JSONL, CoNLL by its suffix, or a folder of these."""
        conll = unpacked_suffix(path).endswith("conll")
        return bool(columns) or conll or table_kind(path) == "jsonl" or path.is_dir()

    @classmethod
    def labels_of(cls, examples: Sequence[DocumentExample]) -> list[str]:
        """Return what to predict: clusters, and singletons if the examples have any."""
        sizes = {len(cluster) for example in examples for cluster in example.clusters or ()}
        if not any(size > 1 for size in sizes):
            raise InputError(
                "the training examples have no clusters of two or more mentions; expected some"
            )
        return [_CLUSTER, _SINGLETON] if 1 in sizes else [_CLUSTER]

    def parse(self, given: Any) -> DocumentExample:
        """Return the example of a document: a string, or a list of sentences."""
        if isinstance(given, DocumentExample):
            return given
        if isinstance(given, str):
            split = (
                self.elmo.tokenizer(sentence)
                for paragraph in _PARAGRAPH.split(given)
                for sentence in split_sentences(paragraph)
            )
            return DocumentExample([words for words in split if words])
        wanted = "a string, or a list of sentences, each a list of words"
        sentences = [
            strings(words, "each sentence", "a list of words")
            for words in each(given, "text", wanted)
        ]
        return DocumentExample([words for words in sentences if words])

    def _is_one(self, given: Any) -> bool:
        """A list of sentences, each a list of words, is one document."""
        first = given[0] if isinstance(given, list | tuple) and given else None
        words = isinstance(first, list | tuple) and all(isinstance(word, str) for word in first)
        return words or super()._is_one(given)

    def prepare(self, example: DocumentExample) -> Prepared:
        """Put the sentences into rows of similar length."""
        pieces = [
            words[start : start + _LONGEST]
            for words in example.sentences
            for start in range(0, len(words), _LONGEST)
        ]
        if not pieces:
            raise wrong("text", "a document with words", "")
        return Prepared(example, _rows(pieces), tuple(_places(pieces)))

    def portion(self, item: Prepared, rng: random.Random) -> Prepared:
        """Return a random part of a document that has too many sentences."""
        most, example = self.settings.model.train_sentences, item.example
        if len(example.sentences) <= most:
            return item
        first = rng.randrange(len(example.sentences) - most + 1)
        sentences = example.sentences[first : first + most]
        start = sum(map(len, example.sentences[:first]))
        end = start + sum(map(len, sentences))
        clusters = [
            [(a - start, b - start) for a, b in cluster if start <= a and b <= end]
            for cluster in example.clusters or ()
        ]
        some = [cluster for cluster in clusters if cluster]
        return self.prepare(DocumentExample(sentences, example.name, some))

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        return CorefHead(input_dim, output_dim, self.settings.model)

    def forward(self, batch: WordBatch) -> list[SpanScores]:
        """Scores of the spans of each document."""
        x, after = self.input(batch)
        characters = None
        if self.settings.model.character_filters:
            characters = to_device(character_ids(batch.words, batch.mask.shape[1]), x.device)
        found: list[SpanScores] = self.head(
            x, batch.mask, after, characters, batch.slots, batch.places
        )
        return found

    def loss(self, output: list[SpanScores], examples: Sequence[DocumentExample]) -> Tensor:
        """Loss per span that was kept: of antecedents and, with singletons, of mentions."""
        losses = []
        for found, example in zip(output, examples, strict=True):
            clusters = example.clusters or ()
            number = {span: k for k, spans in enumerate(clusters) for span in spans}
            own = torch.tensor([number.get(span, -1) for span in found.spans])
            loss = ranking_loss(found, to_device(own, found.scores.device))
            if _SINGLETON in self.labels:  # otherwise, some mentions are not in the data
                loss = loss + mention_loss(found, list(number))
            losses.append(loss / len(found.spans))
        return torch.stack(losses).mean()

    def decode(
        self, output: list[SpanScores], examples: Sequence[DocumentExample]
    ) -> list[Resolved]:
        """Return the clusters of each document."""
        singletons = _SINGLETON in self.labels
        return [
            Resolved(example.sentences, clusters_of(found, singletons), example.name)
            for found, example in zip(output, examples, strict=True)
        ]

    def score(self, examples: Sequence[DocumentExample], predictions: Sequence[Resolved]) -> Scores:
        """MUC, B³, CEAFφ4 and their mean, with and without singletons."""
        gold = [example.clusters or () for example in examples]
        return cluster_scores(gold, [found.clusters for found in predictions])

    def show(self, prediction: Resolved) -> str:
        """Return a line for each sentence, with mentions and their clusters in brackets."""
        return "\n".join(text.plain() for text in self.marked(prediction))

    def marked(self, prediction: Resolved) -> list[MarkedText]:
        """Return the sentences with their mentions; each cluster has a number and a colour."""
        return prediction.marked()

    def record(self, prediction: Resolved | None) -> dict[str, Any]:
        """Return sentences and clusters in the form of e2e-coref, and the text of the mentions.

        The end of a mention is its last word, as in files to train on.
        """
        prediction = prediction or Resolved([], [])
        words = [word for sentence in prediction.sentences for word in sentence]
        return {
            "sentences": prediction.sentences,
            "clusters": [[[a, b - 1] for a, b in cluster] for cluster in prediction.clusters],
            "mentions": [
                [" ".join(words[a:b]) for a, b in cluster] for cluster in prediction.clusters
            ],
        }

    def to_conll(self, prediction: Resolved) -> str:
        """Return a document in the format of CoNLL-2012: number, word and clusters of each word."""
        begins: dict[int, list[str]] = {}
        ends: dict[int, list[str]] = {}
        mentions = [(a, b, k) for k, some in enumerate(prediction.clusters) for a, b in some]
        for a, b, number in sorted(mentions, key=lambda m: (m[0], -m[1])):  # the longest begins
            begins.setdefault(a, []).append(f"({number})" if b - a == 1 else f"({number}")
        for a, b, number in sorted(mentions, reverse=True):  # the shortest ends first
            if b - a > 1:
                ends.setdefault(b - 1, []).append(f"{number})")
        name = prediction.name or "document"
        lines, place = [f"#begin document ({name}); part 000"], 0
        for words in prediction.sentences:
            for number, word in enumerate(words):
                marks = "|".join(begins.get(place, []) + ends.get(place, [])) or "-"
                lines.append("\t".join([name, "0", str(number), word, marks]))
                place += 1
            lines.append("")
        return "\n".join([*lines, "#end document"])


def _places(sentences: Sentences) -> list[Span]:
    """Words (start, end) of each sentence."""
    return list(pairwise(accumulate(map(len, sentences), initial=0)))


def _rows(sentences: Sequence[Sequence[str]]) -> list[Sentences]:
    """Rows of the batch: some sentences each, as many as fit."""
    rows: list[list[Sequence[str]]] = [[]]
    length = 0
    for words in sentences:
        if rows[-1] and length + len(words) > _ROW:
            rows.append([])
            length = 0
        rows[-1].append(words)
        length += len(words)
    return list(rows)
