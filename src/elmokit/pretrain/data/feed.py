"""Turns batches of a corpus into the tensors that a model trains on."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from elmokit.devices import to_device
from elmokit.formats.checkpoint import Checkpoint
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.negatives import Negatives
from elmokit.pretrain.data.recasing import OtherCases, in_other_cases
from elmokit.pretrain.data.target_words import code_words, target_rows
from elmokit.pretrain.data.training_batches import Batches, TrainingBatch
from elmokit.pretrain.recipe_sections import SoftmaxSettings
from elmokit.text.characters import Alphabet
from elmokit.text.vocabulary import Vocabulary

GRACE_SECONDS = 20
"""How long processes that make batches outlive a SIGTERM; Slurm kills after 30 seconds."""
_COLUMNS = (16, 24)  # words that need no more of these go through the CNN together


class WordTable:
    """Character ids of every word that can be read.

    Args:
        words: By code, the two marks first.
        alphabet: What makes the ids.
        columns: Most characters of a word.
        widest: Characters the widest filter sees.
        device: Where the ids are kept.
    """

    def __init__(
        self,
        words: list[str],
        alphabet: Alphabet,
        columns: int,
        widest: int,
        device: torch.device,
    ) -> None:
        parts = [
            torch.from_numpy(alphabet.encode(words[i : i + 65_536], columns))
            for i in range(0, len(words), 65_536)
        ]
        self.ids = torch.cat(parts).to(device)
        # columns of each word
        self.needed = np.minimum(columns, alphabet.lengths(words) + 2 + widest)
        self.n_columns = columns

    def groups(
        self, codes: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], list[tuple[int, int]]]:
        """Codes sorted by the columns they need, and (end, columns) of each group of them."""
        needed = self.needed[codes]
        order = np.argsort(needed, kind="stable")
        codes, needed = codes[order], needed[order]
        limits = [*(c for c in _COLUMNS if c < self.n_columns), self.n_columns]
        ends = np.searchsorted(needed, limits, "right")
        groups, before = [], 0
        for end, columns in zip(ends.tolist(), limits, strict=True):
            if end > before:
                groups.append((end, columns))
                before = end
        return codes, groups


@dataclass
class ModelBatch:
    """A batch as the model takes it; all numbers are in one tensor, copied to the GPU at once."""

    numbers: Tensor
    """W distinct input words, 2 · N inputs, 2 · N targets, 2 · S sampled words."""
    n_words: int
    groups: list[tuple[int, int]]
    """(end, columns) of each group of words that goes through the CNN together."""
    lengths: Tensor
    """Length (B,) of each row, always on the CPU; N is their sum."""
    tries: list[int]
    """Draws it took to sample S distinct words, by direction; empty without sampling."""
    total: int
    """Tokens that a direction predicts, summed over all processes."""
    carried: bool
    """Whether rows continue those of the previous batch."""

    @property
    def words(self) -> Tensor:
        """Codes (W,) of the words."""
        return self.numbers[: self.n_words]

    @property
    def inputs(self) -> Tensor:
        """Index (2, N) into the words, of each input by direction."""
        return self._rows(0)

    @property
    def targets(self) -> Tensor:
        """Rows (2, N) of the softmax to predict."""
        return self._rows(1)

    @property
    def drawn(self) -> Tensor:
        """Sampled rows (2, S) of the softmax, by direction."""
        return self.numbers[self.n_words + 4 * self._n :].view(2, -1)

    def _rows(self, number: int) -> Tensor:
        start = self.n_words + number * 2 * self._n
        return self.numbers[start : start + 2 * self._n].view(2, -1)

    @property
    def _n(self) -> int:
        return int(self.lengths.sum())

    def pin_memory(self) -> ModelBatch:
        """Return the batch in pinned memory; the DataLoader calls this."""
        return replace(self, numbers=self.numbers.pin_memory())

    def to(self, device: torch.device) -> ModelBatch:
        """Return the batch on a device."""
        return replace(self, numbers=to_device(self.numbers, device).long())


class Feed:
    """Makes the batches of a corpus for a model.

    Args:
        corpus: The text.
        plan: Its batches.
        base: Provides the model's alphabet and vocabulary.
        softmax: How words are predicted.
        seed: Decides which words are sampled and which sentences are read in another case.
        device: The model's device.
        recased: Fraction of sentences to read in another case.
    """

    def __init__(
        self,
        corpus: Corpus,
        plan: Batches,
        base: Checkpoint,
        softmax: SoftmaxSettings,
        seed: int,
        device: torch.device,
        recased: float = 0.0,
    ) -> None:
        alphabet, encoder = base.alphabet(), base.config.token_encoder
        vocabulary = base.vocabulary or []
        words = code_words(corpus, alphabet.begin, alphabet.end)
        self._cases = None
        if recased:
            words, cases = in_other_cases(words)
            self._cases = OtherCases(cases, recased, plan.n_sentences, seed)
        self.table = WordTable(words, alphabet, encoder.max_characters, encoder.widest, device)
        """Characters of all input words."""
        self.targets = target_rows(corpus, vocabulary)
        """Row of the softmax, by code."""
        self.unknown = vocabulary.index(Vocabulary.unknown)
        """Row of the softmax for unknown words."""
        self.corpus, self.plan, self.device, self._seed = corpus, plan, device, seed
        self._negatives = None
        if softmax.kind == "sampled":
            self._negatives = Negatives(len(vocabulary), softmax.samples)

    def batches(self, epoch: int, first: int, step: int) -> Generator[ModelBatch, None, None]:
        """Yield the batches of an epoch, starting with number ``first``, which belongs to a step.

        If the model is on a GPU, other processes make them: a thread would keep this process from
        launching work on the GPU.
        """
        plan = range(first, self.plan.n_batches(epoch))
        workers = _workers() if self.device.type == "cuda" else 0
        loader = DataLoader(
            _Made(self, epoch, step - first),
            batch_size=None,
            sampler=plan,
            num_workers=workers,
            worker_init_fn=_leave_signals,
            multiprocessing_context="fork" if workers else None,
            prefetch_factor=4 if workers else None,
            pin_memory=workers > 0,
            generator=torch.Generator(),  # the global one would differ after resuming
        )
        for batch in loader:
            yield batch.to(self.device)

    def make(self, batch: TrainingBatch, step: int | None) -> ModelBatch:
        """Return a batch on the CPU, with the random choices of a training step.

        With step None, no words are sampled and no sentence is read in another case.
        """
        read = batch.inputs
        if self._cases is not None and step is not None:
            read = self._cases.read(batch)
        codes, inverse = np.unique(read, return_inverse=True)
        words, groups = self.table.groups(codes)
        place = np.empty(int(codes[-1]) + 1, np.int64)
        place[words] = np.arange(len(words))
        inputs = place[codes][inverse].reshape(batch.inputs.shape)
        parts: list[npt.NDArray[np.integer]] = [words, inputs, self.targets[batch.targets]]
        tries = []
        if self._negatives is not None and step is not None:
            rng = np.random.default_rng([self._seed, 1, step])
            for _ in range(2):
                drawn, n = self._negatives.draw(rng)
                parts.append(drawn)
                tries.append(n)
        numbers = np.concatenate([part.ravel().astype(np.int32) for part in parts])
        return ModelBatch(
            torch.from_numpy(numbers),
            len(words),
            groups,
            torch.from_numpy(batch.lengths),
            tries,
            batch.total,
            batch.carried,
        )


class _Made(Dataset[ModelBatch]):
    """The batches of an epoch, by number."""

    def __init__(self, feed: Feed, epoch: int, offset: int) -> None:
        self._feed, self._epoch, self._offset = feed, epoch, offset

    def __getitem__(self, number: int) -> ModelBatch:
        return self._feed.make(self._feed.plan.batch(self._epoch, number), self._offset + number)


def _workers() -> int:
    """Number of processes that make batches: up to 4, a quarter of the cores; 0 without fork."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 0
    return min(4, (os.cpu_count() or 1) // 4)


def _leave_signals(number: int) -> None:
    """Leave Ctrl-C and SIGTERM, which may reach all processes, to the training process.

    After a SIGTERM this process lives on for a while. If it died at once, the training process
    could not finish its step and save.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(GRACE_SECONDS))  # whose signal ends it
