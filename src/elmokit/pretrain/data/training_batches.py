"""What a biLM is trained on: batches of a corpus, in an order that a seed decides.

An input is a code: 0 for the mark before a sentence, 1 for the mark behind it, and 2 more than the
number of a word in the corpus. The forward direction reads the mark before the sentence and its
words, and is to predict the words and the mark behind it; the backward direction the same from the
other end. Neither reads the mark it is to predict last, as in the originals. Any batch can be made
by itself, so that a run that was stopped goes on at once, with the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from elmokit.errors import InputError
from elmokit.pretrain.data.corpus import Codes, Corpus, Numbers

BEGIN, END, FIRST_WORD = 0, 1, 2


@dataclass
class TrainingBatch:
    """Tokens to read and to predict, without padding: all of step 0, then of step 1, and so on."""

    inputs: Codes
    """Codes (2, N) that the forward and the backward direction read."""
    targets: Codes
    """Codes (2, N) that they are to predict."""
    lengths: Numbers
    """Steps (B,) of each row, longest first; N is their sum."""
    sentences: Numbers
    """Number (N,) of the sentence, or piece of one, that each step is of."""
    epoch: int
    """The pass over the text it belongs to."""
    total: int
    """Tokens a direction predicts in this batch, on all machines together."""
    carried: bool
    """Whether rows go on where those of the batch before ended."""


@dataclass(frozen=True)
class Share:
    """Which part of every batch is this process's."""

    rank: int = 0
    size: int = 1


class Batches(Protocol):
    """The batches of an epoch, by their number."""

    @property
    def n_sentences(self) -> int:
        """How many sentences, or pieces of some, have numbers."""
        ...

    def n_batches(self, epoch: int) -> int:
        """How many there are."""
        ...

    def batch(self, epoch: int, number: int) -> TrainingBatch:
        """One of them."""
        ...


class SentenceBatches:
    """Sentences alone, each from a fresh state: what a model sees when it is used.

    Sentences are shuffled, sorted by length within groups of many, cut into batches, and these are
    shuffled. What is in a batch does not depend on how many processes share it.

    Args:
        corpus: What to train on.
        batch_tokens: About how many tokens a batch has.
        seed: Decides the order.
        max_length: Longer sentences are cut into pieces of this many tokens.
        share: This process's part.
    """

    _GROUP = 100  # batches' sentences sorted by length together

    def __init__(
        self,
        corpus: Corpus,
        batch_tokens: int,
        seed: int,
        max_length: int = 128,
        share: Share | None = None,
    ) -> None:
        self._corpus, self._seed, self._share = corpus, seed, share or Share()
        self._batch_tokens = batch_tokens
        self._starts, self._lengths = _cut(corpus, max_length)
        if corpus.n_tokens < batch_tokens:
            raise InputError(
                f"the text has {corpus.n_tokens:,} tokens, fewer than one batch of "
                f"{batch_tokens:,}; give more text, or a smaller batch"
            )
        # a batch has three quarters of the tokens asked for at least, but for a sentence more or
        # less, and a process without a sentence would have nothing to do
        longest, size = int(self._lengths.max()) + 1, self._share.size
        if size > 1 and 3 * batch_tokens < 4 * size * longest:
            raise InputError(
                f"a batch of {batch_tokens:,} tokens may hold fewer sentences of up to {longest} "
                f"tokens than there are processes, {size}; choose batch.tokens of "
                f"{-(-4 * size * longest // 3):,} or more, a smaller batch.max_length, or fewer "
                "processes"
            )
        self._planned: tuple[int, list[Numbers]] = (-1, [])

    @property
    def n_sentences(self) -> int:
        """See :class:`Batches`."""
        return len(self._starts)

    def n_batches(self, epoch: int) -> int:
        """See :class:`Batches`."""
        return len(self._plan(epoch))

    def batch(self, epoch: int, number: int) -> TrainingBatch:
        """See :class:`Batches`."""
        which = self._plan(epoch)[number]
        total = int((self._lengths[which] + 1).sum())
        # every so-manieth, so that all processes have sentences of the same lengths
        mine = which[self._share.rank :: self._share.size]  # as planned, longest first
        starts, lengths = self._starts[mine], self._lengths[mine]
        steps = np.arange(int(lengths.max()) + 1)[:, None]
        step, row = np.nonzero(steps <= lengths)
        inputs, targets = _both_ways(self._corpus, starts[row], lengths[row], step)
        return TrainingBatch(inputs, targets, lengths + 1, mine[row], epoch, total, carried=False)

    def _plan(self, epoch: int) -> list[Numbers]:
        planned, batches = self._planned  # at once, as another thread may ask for another epoch
        if planned != epoch:
            rng = np.random.default_rng([self._seed, epoch])
            order = rng.permutation(len(self._starts))
            positions = np.cumsum(self._lengths[order] + 1)
            batches = []
            group = self._GROUP * self._batch_tokens
            edges = np.searchsorted(positions, np.arange(group, positions[-1], group))
            if len(edges) and positions[-1] - positions[edges[-1] - 1] < self._batch_tokens:
                edges = edges[:-1]  # what is left is less than a batch
            for part in filter(len, np.split(order, edges)):
                part = part[np.argsort(-self._lengths[part], kind="stable")]
                ends = np.cumsum(self._lengths[part] + 1)
                n = max(1, round(int(ends[-1]) / self._batch_tokens))
                cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n) / n)
                # a sentence longer than a batch leaves nothing for the next
                batches += [b for b in np.split(part, cuts) if len(b)]
            rng.shuffle(batches)
            self._planned = (epoch, batches)
        return batches


def one_after_another(corpus: Corpus, batch_tokens: int) -> SentenceBatches:
    """All sentences, alone and whole, for evaluation; the same sample comes first each time."""
    longest = int(corpus.lengths.max())
    return SentenceBatches(corpus, min(batch_tokens, corpus.n_tokens), 0, longest)


class StreamBatches:
    """Rows of sentence after sentence, cut every so many steps, the state carried on.

    Args:
        corpus: What to train on.
        rows: Sentences read side by side.
        steps: Tokens of each in a batch, through which gradients go back.
        seed: Decides the order.
        documents: Shuffle whole documents instead of single sentences.
        share: This process's part.
    """

    def __init__(
        self,
        corpus: Corpus,
        rows: int,
        steps: int,
        seed: int,
        documents: bool = False,
        share: Share | None = None,
    ) -> None:
        self._corpus, self._rows, self._steps = corpus, rows, steps
        self._seed, self._documents, self._share = seed, documents, share or Share()
        if rows % self._share.size:
            raise InputError(
                f"{rows} rows (batch.tokens / batch.steps) cannot be shared out evenly among "
                f"{self._share.size} processes; choose batch.tokens as a multiple of "
                f"{steps * self._share.size}"
            )
        self._total = corpus.n_tokens + len(corpus)
        if self._total // rows < steps:
            raise InputError(
                f"the text has {corpus.n_tokens:,} tokens, fewer than one batch of {rows} rows of "
                f"{steps}; give more text, or a smaller batch"
            )
        self._ordered: tuple[int, Numbers, Numbers] | None = None

    @property
    def n_sentences(self) -> int:
        """See :class:`Batches`."""
        return len(self._corpus)

    def n_batches(self, epoch: int) -> int:
        """See :class:`Batches`."""
        return self._total // self._rows // self._steps

    def batch(self, epoch: int, number: int) -> TrainingBatch:
        """See :class:`Batches`."""
        order, ends = self._order(epoch)
        rows = self._rows // self._share.size
        first = np.arange(rows) + self._share.rank * rows
        places = first * (self._total // self._rows) + number * self._steps
        places = places + np.arange(self._steps)[:, None]  # (T, B): step by step
        at = np.searchsorted(ends, places.ravel(), "right")
        sentence = order[at]
        lengths = self._corpus.lengths[sentence].astype(np.int64)
        offset = places.ravel() - (ends[at] - lengths - 1)
        inputs, targets = _both_ways(self._corpus, self._corpus.starts[sentence], lengths, offset)
        return TrainingBatch(
            inputs,
            targets,
            np.full(rows, self._steps),
            sentence,
            epoch,
            self._rows * self._steps,
            number > 0,
        )

    def _order(self, epoch: int) -> tuple[Numbers, Numbers]:
        """The sentences one after another, and where each ends, its mark included."""
        ordered = self._ordered
        if ordered is None or ordered[0] != epoch:
            rng = np.random.default_rng([self._seed, epoch])
            if self._documents:
                bounds = np.append(self._corpus.documents, len(self._corpus))
                order = np.concatenate(
                    [np.arange(bounds[d], bounds[d + 1]) for d in rng.permutation(len(bounds) - 1)]
                )
            else:
                order = rng.permutation(len(self._corpus))
            ordered = (epoch, order, np.cumsum(self._corpus.lengths[order] + 1))
            self._ordered = ordered
        return ordered[1:]


def _cut(corpus: Corpus, max_length: int) -> tuple[Numbers, Numbers]:
    """Starts and lengths of all sentences, long ones in pieces."""
    lengths = corpus.lengths.astype(np.int64)
    pieces = -(-lengths // max_length)
    which = np.repeat(np.arange(len(lengths)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = corpus.starts[which] + number * max_length
    return starts, np.minimum(max_length, lengths[which] - number * max_length)


def _both_ways(
    corpus: Corpus, starts: Numbers, lengths: Numbers, offset: Numbers
) -> tuple[Codes, Codes]:
    """Inputs and targets (2, N) at steps of sentences, from either end."""

    def word(place: Numbers) -> Codes:
        inside = (place >= 0) & (place < lengths)
        return corpus.tokens[starts + np.where(inside, place, 0)] + np.int32(FIRST_WORD)

    first, last = offset == 0, offset == lengths
    inputs = [
        np.where(first, np.int32(BEGIN), word(offset - 1)),
        np.where(first, np.int32(END), word(lengths - offset)),
    ]
    targets = [
        np.where(last, np.int32(END), word(offset)),
        np.where(last, np.int32(BEGIN), word(lengths - 1 - offset)),
    ]
    return np.stack(inputs), np.stack(targets)
