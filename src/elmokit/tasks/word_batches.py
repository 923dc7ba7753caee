"""Examples to batches: ELMo's layers, static vectors and padding."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from elmokit.devices import to_device
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.tasks.frozen_layers import FrozenLayers
from elmokit.tasks.word_input import Sentences, StaticTable, WordBatch, WordInput
from elmokit.text.tokenizers import Span

_SORTED_BATCHES = 50  # examples of so many batches are sorted by length together

Example = TypeVar("Example")


class Prepared(NamedTuple):
    """An example with its texts, which are split into words once."""

    example: Any
    texts: list[Sentences]
    """Each is a row of the batch."""
    places: tuple[Span, ...] = ()
    """Marked words (start, end): both entities of a relation, the sentences of a document."""
    detail: Any = None
    """What the task itself needs to know of the example, such as where its answers are."""

    @property
    def length(self) -> int:
        """Words of its longest text: a batch is padded to these."""
        return max(sum(map(len, text)) for text in self.texts)


def sentences_of(items: Iterable[Prepared]) -> Iterator[Sequence[str]]:
    """Yield the sentences of all texts of some examples."""
    return (sentence for item in items for text in item.texts for sentence in text)


class Batcher:
    """Makes the input of examples.

    Args:
        word_input: Says which layers and vectors are needed.
        frozen: Source of ELMo's layers if the biLM does not learn.
        tuned: Source of the layers if it does: gradients flow through them.
        device: Where the tensors go.
    """

    def __init__(
        self,
        word_input: WordInput,
        frozen: FrozenLayers,
        tuned: ElmoEmbedding | None,
        device: torch.device,
    ) -> None:
        self._layers, self._static = word_input.layers, word_input.static
        self._frozen, self._tuned, self._device = frozen, tuned, device

    def make(self, items: Sequence[Prepared]) -> WordBatch:
        """Return the batch of some examples; the rows of one with several texts are adjacent."""
        texts = [text for item in items for text in item.texts]
        words = [[word for sentence in text for word in sentence] for text in texts]
        lengths = torch.tensor([len(row) for row in words])
        longest = max(1, int(lengths.max()))
        mask = torch.arange(longest) < lengths[:, None]
        static = None
        if self._static is not None:
            static = to_device(_static_rows(self._static, words, longest), self._device)
        layers = None
        if self._layers:
            sentences = [sentence for text in texts for sentence in text if len(sentence)]
            layers = self._tuned_layers(sentences) if self._tuned else self._kept(sentences)
        return WordBatch(
            words,
            to_device(mask, self._device),
            lengths,
            layers,
            to_device(mask.flatten().nonzero().squeeze(1), self._device),
            static,
            [item.places for item in items],
            [item.detail for item in items],
        )

    def _kept(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Layers (K, N, D)."""
        joined = self._frozen.joined(sentences).to(self._device, non_blocking=True)
        return joined.transpose(0, 1).to(torch.float32, memory_format=torch.contiguous_format)

    def _tuned_layers(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Layers (K, N, D) with gradients."""
        assert self._tuned is not None
        found, real = self._tuned.layers(sentences)
        return found[self._layers][:, real]


def _static_rows(table: StaticTable, words: list[list[str]], longest: int) -> Tensor:
    rows = torch.zeros(len(words), longest, dtype=torch.long)
    for row, some in zip(rows, words, strict=True):
        row[: len(some)] = torch.tensor(table.rows(some), dtype=torch.long)
    return rows


def shuffled(
    examples: Sequence[Example], lengths: Sequence[int], batch_size: int, seed: int, epoch: int
) -> list[list[Example]]:
    """Return the batches of an epoch: random, but of examples of similar length.

    Args:
        examples: All examples.
        lengths: Their lengths.
        batch_size: Examples of a batch.
        seed: Decides the order.
        epoch: Every epoch has another order.
    """
    rng = random.Random(f"{seed} {epoch}")
    order = list(range(len(examples)))
    rng.shuffle(order)
    batches = []
    group = batch_size * _SORTED_BATCHES
    for start in range(0, len(order), group):
        some = sorted(order[start : start + group], key=lambda i: lengths[i])
        batches += [some[i : i + batch_size] for i in range(0, len(some), batch_size)]
    rng.shuffle(batches)
    return [[examples[i] for i in batch] for batch in batches]


def by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yield indices of examples in batches of similar length, longest first."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
