"""Training batches of a corpus, in an order that a seed decides.

Inputs and targets are codes: BEGIN, END, or FIRST_WORD plus the number of a word in the corpus. The
forward direction reads BEGIN and the words of a sentence, and predicts the words and END. The
backward direction does the same from the other end. As in the originals, neither reads the mark
that it predicts last. Any batch can be made on its own, so a resumed run continues with the same
batches at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from elmokit.errors import InputError
from elmokit.pretrain.data.corpus import Codes, Corpus, Numbers
from elmokit.pretrain.recipe import Recipe

BEGIN, END, FIRST_WORD = 0, 1, 2
"""Codes of the marks before and after a sentence, and of word 0 of the corpus."""


@dataclass
class TrainingBatch:
    """Inputs and targets without padding: all rows at step 0, then all at step 1, and so on."""

    inputs: Codes
    """Codes (2, N) that the forward and the backward direction read."""
    targets: Codes
    """Codes (2, N) that they predict."""
    lengths: Numbers
    """Length (B,) of each row, longest first; N is their sum."""
    sentences: Numbers
    """Number (N,) of the sentence, or piece of one, that each step belongs to."""
    epoch: int
    """The pass over the text."""
    total: int
    """Tokens that a direction predicts in this batch, summed over all processes."""
    carried: bool
    """Whether rows continue those of the previous batch."""


@dataclass(frozen=True)
class Share:
    """The part of every batch that belongs to this process."""

    rank: int = 0
    size: int = 1


class Batches(Protocol):
    """The batches of each epoch, by number."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences, or pieces of sentences."""
        ...

    def n_batches(self, epoch: int) -> int:
        """Return the number of batches in an epoch."""
        ...

    def batch(self, epoch: int, number: int) -> TrainingBatch:
        """Return one batch."""
        ...


class SentenceBatches:
    """Batches of single sentences, each from a fresh state, as in inference.

    Sentences are shuffled, sorted by length within large groups, and cut into batches, which are
    shuffled too. The content of a batch does not depend on the number of processes.

    Args:
        corpus: The text.
        batch_tokens: Approximate tokens per batch.
        seed: Decides the order.
        max_length: Longer sentences are cut into pieces of this many tokens.
        share: The part of this process.
        max_tokens: Use only as many random sentences as have this many tokens; None uses all.
    """

    _GROUP = 100  # batches per group of sentences sorted by length

    def __init__(
        self,
        corpus: Corpus,
        batch_tokens: int,
        seed: int,
        max_length: int = 128,
        share: Share | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._corpus, self._seed, self._share = corpus, seed, share or Share()
        self._batch_tokens = batch_tokens
        self._starts, self._lengths = _cut(corpus, max_length)
        if max_tokens is not None and max_tokens < corpus.n_tokens:
            order = np.random.default_rng(seed).permutation(len(self._starts))
            n = int(np.searchsorted(np.cumsum(self._lengths[order]), max_tokens)) + 1
            some = np.sort(order[:n])
            self._starts, self._lengths = self._starts[some], self._lengths[some]
        if corpus.n_tokens < batch_tokens:
            raise InputError(
                f"the text has {corpus.n_tokens:,} tokens, fewer than one batch of "
                f"{batch_tokens:,}; use more text, or a smaller batch.tokens"
            )
        # a batch has at least three quarters of batch_tokens, give or take a sentence, and every
        # process needs a sentence
        longest, size = int(self._lengths.max()) + 1, self._share.size
        if size > 1 and 3 * batch_tokens < 4 * size * longest:
            raise InputError(
                f"a batch of {batch_tokens:,} tokens may have fewer sentences of up to {longest} "
                f"tokens than the {size} processes; choose batch.tokens of "
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
        # every size-th sentence: all processes get similar lengths
        mine = which[self._share.rank :: self._share.size]  # longest first
        starts, lengths = self._starts[mine], self._lengths[mine]
        steps = np.arange(int(lengths.max()) + 1)[:, None]
        step, row = np.nonzero(steps <= lengths)
        inputs, targets = _both_ways(self._corpus, starts[row], lengths[row], step)
        return TrainingBatch(inputs, targets, lengths + 1, mine[row], epoch, total, carried=False)

    def _plan(self, epoch: int) -> list[Numbers]:
        planned, batches = self._planned  # read once: another thread may plan another epoch
        if planned != epoch:
            rng = np.random.default_rng([self._seed, epoch])
            order = rng.permutation(len(self._starts))
            positions = np.cumsum(self._lengths[order] + 1)
            batches = []
            group = self._GROUP * self._batch_tokens
            edges = np.searchsorted(positions, np.arange(group, positions[-1], group))
            if len(edges) and positions[-1] - positions[edges[-1] - 1] < self._batch_tokens:
                edges = edges[:-1]  # the rest is less than a batch
            for part in filter(len, np.split(order, edges)):
                part = part[np.argsort(-self._lengths[part], kind="stable")]
                ends = np.cumsum(self._lengths[part] + 1)
                n = max(1, round(int(ends[-1]) / self._batch_tokens))
                cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n) / n)
                # a sentence longer than a batch leaves the next one empty
                batches += [b for b in np.split(part, cuts) if len(b)]
            rng.shuffle(batches)
            self._planned = (epoch, batches)
        return batches


def one_after_another(
    corpus: Corpus, batch_tokens: int, max_tokens: int | None = None
) -> SentenceBatches:
    """Return batches of whole sentences for evaluation, always the same in the same order."""
    longest = int(corpus.lengths.max())
    batch_tokens = min(batch_tokens, corpus.n_tokens)
    return SentenceBatches(corpus, batch_tokens, 0, longest, max_tokens=max_tokens)


class StreamBatches:
    """Batches of rows in which sentence follows sentence and the state is carried on.

    Args:
        corpus: The text.
        rows: Rows per batch.
        steps: Tokens per row and batch, through which gradients flow back.
        seed: Decides the order.
        documents: Whether to shuffle whole documents instead of single sentences.
        share: The part of this process.
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
                f"{rows} rows (batch.tokens / batch.steps) cannot be divided evenly among "
                f"{self._share.size} processes; choose a batch.tokens that is a multiple of "
                f"{steps * self._share.size}"
            )
        self._total = corpus.n_tokens + len(corpus)
        if self._total // rows < steps:
            raise InputError(
                f"the text has {corpus.n_tokens:,} tokens, fewer than one batch of {rows} rows of "
                f"{steps} tokens; use more text, or a smaller batch.tokens"
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
        places = places + np.arange(self._steps)[:, None]  # (T, B)
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
        """Return the order of the sentences, and where each ends, including its mark."""
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


def make_batches(recipe: Recipe, corpus: Corpus, share: Share) -> Batches:
    """Return the batches that a recipe asks for."""
    settings, seed = recipe.batch, recipe.training.seed
    if settings.order == "sentences":
        return SentenceBatches(corpus, settings.tokens, seed, settings.max_length, share)
    rows = max(1, settings.tokens // settings.steps)
    return StreamBatches(corpus, rows, settings.steps, seed, settings.order == "documents", share)


def _cut(corpus: Corpus, max_length: int) -> tuple[Numbers, Numbers]:
    """Return starts and lengths of all sentences, with long ones cut into pieces."""
    lengths = corpus.lengths.astype(np.int64)
    max_length = min(max_length, int(lengths.max()))  # more would overflow
    pieces = -(-lengths // max_length)
    which = np.repeat(np.arange(len(lengths)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = corpus.starts[which] + number * max_length
    return starts, np.minimum(max_length, lengths[which] - number * max_length)


def _both_ways(
    corpus: Corpus, starts: Numbers, lengths: Numbers, offset: Numbers
) -> tuple[Codes, Codes]:
    """Return inputs and targets (2, N) at steps of sentences, counted from either end."""

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
