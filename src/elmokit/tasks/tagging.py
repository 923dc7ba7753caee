"""Sequence tagging: a tag for every word, by a biLSTM and a CRF. Entities and parts of speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.devices import to_device
from elmokit.errors import InputError
from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.crf import CRF, allowed_transitions
from elmokit.tasks.heads.encoders import BiLSTMEncoder, CharCNN
from elmokit.tasks.long_texts import cut
from elmokit.tasks.marked_text import Mark, Marked, MarkedText
from elmokit.tasks.measures.tag_schemes import Span, read_spans
from elmokit.tasks.readers.examples import TaggedExample
from elmokit.tasks.readers.records import table_kind, unpacked_suffix
from elmokit.tasks.sentence_task import SentenceTask, sentence_record
from elmokit.tasks.task_settings import check_model
from elmokit.tasks.word_characters import BYTES, character_ids
from elmokit.tasks.word_input import WordBatch

_CONLL = (".conll", ".conllu", ".tsv", ".iob", ".iob2", ".bio", ".bioes", ".bilou", ".bmes")


@dataclass(frozen=True)
class TaggerSettings:
    """The network of a tagger."""

    hidden_dim: int = 200
    """Cells of each direction of its LSTM."""
    n_layers: int = 1
    """Layers of its LSTM."""
    dropout: float = 0.5
    """Dropout inside the network."""
    character_filters: int = 30
    """Filters of its own character CNN; 0 for none."""

    def __post_init__(self) -> None:
        check_model(self)


@dataclass(frozen=True)
class Tagged(Marked):
    """Words and the tags that a tagger gave them."""

    words: list[str]
    tags: list[str]
    scheme: str | None = field(default="iob2", repr=False, compare=False)
    """Scheme of the tags; None if each tag is one of its word alone."""
    lengths: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """Words of each sentence; empty for one."""

    def marked(self, kinds: Sequence[str] = ()) -> list[MarkedText]:
        """Return the text with its entities, or with a tag at each word."""
        if self.scheme is None:
            spans = [Span(i, i + 1, tag) for i, tag in enumerate(self.tags)]
        else:
            spans = read_spans(self.tags)
        order = {kind: i for i, kind in enumerate(dict.fromkeys(kinds or [k for *_, k in spans]))}
        marks = [Mark(start, end, kind, order.get(kind, 0)) for start, end, kind in spans]
        return [MarkedText(self.words, marks)]


class TaggerHead(nn.Module):
    """Characters, biLSTM, linear layer, and a CRF over the tags if they have an order.

    Args:
        input_dim: Width X of the input.
        output_dim: Width of what joins the LSTM's output; 0 for nothing.
        labels: The tags, K of them.
        settings: Sizes.
        scheme: Scheme of tags for the CRF, as in :func:`allowed_transitions`; None for no CRF.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        labels: Sequence[str],
        settings: TaggerSettings,
        scheme: str | None,
    ) -> None:
        super().__init__()
        filters = settings.character_filters
        self.characters = CharCNN(BYTES, filters=filters) if filters else None
        self.encoder = BiLSTMEncoder(
            input_dim + filters, settings.hidden_dim, settings.n_layers, settings.dropout
        )
        self.dropout = Dropout(settings.dropout)
        self.linear = nn.Linear(2 * settings.hidden_dim + output_dim, len(labels))
        self.crf = None
        if scheme is not None:
            self.crf = CRF(len(labels), allowed_transitions(labels, scheme))

    def forward(
        self, x: Tensor, mask: Tensor, after: Tensor | None, characters: Tensor | None
    ) -> Tensor:
        """Scores (B, T, K) of an input (B, T, X) with characters (B, T, C)."""
        if self.characters is not None and characters is not None:
            x = torch.cat([x, self.dropout(self.characters(characters))], -1)
        states = self.dropout(self.encoder(x, mask))
        if after is not None:
            states = torch.cat([states, after], -1)
        scores: Tensor = self.linear(states)
        return scores


class Tagger(SentenceTask[TaggedExample, Tagged]):
    """What both kinds of taggers share."""

    example = TaggedExample
    scheme: str | None = None
    """Scheme of tags whose order a CRF learns; None predicts every tag alone."""

    @classmethod
    def is_table(cls, path: Path, columns: dict[str, str] | None = None) -> bool:
        """A CoNLL file is known by its suffix; a folder contains such files."""
        if unpacked_suffix(path) in _CONLL or path.is_dir():
            return True
        if not columns and table_kind(path) is not None:
            raise InputError(
                f"{path} is not a file for {cls.name}; give one text per line (.txt), or a CoNLL "
                f"file ({', '.join(_CONLL)})"
            )
        return bool(columns)

    def joined(self, predictions: Sequence[Tagged]) -> Tagged:
        """Return the tags of a text from those of its sentences."""
        if len(predictions) == 1:
            return predictions[0]
        return Tagged(
            [word for one in predictions for word in one.words],
            [tag for one in predictions for tag in one.tags],
            self.scheme,
            tuple(len(one.words) for one in predictions),
        )

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        return TaggerHead(input_dim, output_dim, self.labels, self.settings.model, self.scheme)

    def forward(self, batch: WordBatch) -> tuple[Tensor, Tensor]:
        """Scores (B, T, K) and the mask (B, T)."""
        x, after = self.input(batch)
        characters = None
        if self.settings.model.character_filters:
            characters = to_device(character_ids(batch.words, batch.mask.shape[1]), x.device)
        return self.head(x, batch.mask, after, characters), batch.mask

    def loss(self, output: tuple[Tensor, Tensor], examples: Sequence[TaggedExample]) -> Tensor:
        """Mean negative log likelihood of a sentence's tags, or cross entropy of a tag."""
        scores, mask = output
        gold = self._gold(examples, mask)
        crf = cast(TaggerHead, self.head).crf
        if crf is not None:
            losses: Tensor = crf(scores, gold.clamp(min=0), mask)
            return losses.mean()
        return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=-1)

    def decode(
        self, output: tuple[Tensor, Tensor], examples: Sequence[TaggedExample]
    ) -> list[Tagged]:
        """Return the best sequence of tags of each sentence."""
        scores, mask = output
        crf = cast(TaggerHead, self.head).crf
        best = crf.decode(scores, mask) if crf is not None else scores.argmax(-1)
        rows = best.cpu().tolist()
        return [
            Tagged(example.words, [self.labels[i] for i in row[: len(example.words)]], self.scheme)
            for example, row in zip(examples, rows, strict=True)
        ]

    def show(self, prediction: Tagged) -> str:
        """Return words and tags, as word/TAG."""
        pairs = zip(prediction.words, prediction.tags, strict=True)
        return " ".join(f"{word}/{tag}" for word, tag in pairs)

    def record(self, prediction: Tagged | None) -> dict[str, Any]:
        """Return words and tags."""
        prediction = prediction or Tagged([], [])
        words = {"words": prediction.words} | sentence_record(prediction.lengths)
        return words | {"tags": prediction.tags}

    def to_conll(self, prediction: Tagged) -> str:
        """Return sentences in CoNLL form: a word, a tab and its tag per line."""
        lines = [f"{w}\t{tag}\n" for w, tag in zip(prediction.words, prediction.tags, strict=True)]
        return "\n".join("".join(some) for some in cut(lines, prediction.lengths))

    def _gold(self, examples: Sequence[TaggedExample], mask: Tensor) -> Tensor:
        """Numbers (B, T) of the right tags; -1 for one that the training examples do not have."""
        number = {label: i for i, label in enumerate(self.labels)}
        gold = torch.full(mask.shape, -1)
        for row, example in zip(gold, examples, strict=True):
            tags = example.tags or []
            row[: len(tags)] = torch.tensor([number.get(tag, -1) for tag in tags])
        return to_device(gold, mask.device)
