"""From the numbers of a corpus to the tensors a model is trained on."""

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
from elmokit.pretrain.data.recasing import OtherCases, in_other_cases
from elmokit.pretrain.data.target_words import code_words, target_rows
from elmokit.pretrain.data.training_batches import Batches, TrainingBatch
from elmokit.pretrain.objective.losses import Negatives
from elmokit.pretrain.recipe import SoftmaxSettings
from elmokit.text.characters import Alphabet
from elmokit.text.vocabulary import Vocabulary

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
        lengths = np.fromiter((len(w.encode("utf-8", "ignore")) for w in words), int, len(words))
        self.needed = np.minimum(columns, lengths + 2 + widest)  # columns of each word
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
    """A batch as a model takes it; all its numbers are one tensor, so that they travel at once."""

    numbers: Tensor
    """W distinct words read, 2 · N inputs, 2 · N targets, 2 · S words drawn."""
    n_words: int
    groups: list[tuple[int, int]]
    """(end, columns) of words that go through the CNN together."""
    lengths: Tensor
    """Steps (B,) of each row, always on the CPU; N is their sum."""
    tries: list[int]
    """By direction, how often was drawn until there were S different words; none if full."""
    total: int
    """Tokens a direction predicts, on all machines together."""
    carried: bool
    """Whether rows go on where those of the batch before ended."""

    @property
    def words(self) -> Tensor:
        """Codes (W,) of the words."""
        return self.numbers[: self.n_words]

    @property
    def inputs(self) -> Tensor:
        """Which of the words (2, N) is read, by direction."""
        return self._rows(0)

    @property
    def targets(self) -> Tensor:
        """Rows (2, N) of the softmax to be predicted."""
        return self._rows(1)

    @property
    def drawn(self) -> Tensor:
        """Rows (2, S) of the softmax that stand for all others."""
        return self.numbers[self.n_words + 4 * self._n :].view(2, -1)

    def _rows(self, number: int) -> Tensor:
        start = self.n_words + number * 2 * self._n
        return self.numbers[start : start + 2 * self._n].view(2, -1)

    @property
    def _n(self) -> int:
        return int(self.lengths.sum())

    def pin_memory(self) -> ModelBatch:
        """The same where a GPU can fetch it from; called by the loader."""
        return replace(self, numbers=self.numbers.pin_memory())

    def to(self, device: torch.device) -> ModelBatch:
        """The same where it will be computed."""
        return replace(self, numbers=to_device(self.numbers, device).long())


class Feed:
    """What a corpus gives a model.

    Args:
        corpus: The text.
        plan: Its batches.
        base: The model's alphabet and vocabulary.
        softmax: How the words are predicted.
        seed: Decides which words are drawn, and which sentences are read in another case.
        device: Where the model is.
        recased: The share of these.
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
        """The characters of its words."""
        self.targets = target_rows(corpus, vocabulary)
        """By code, the row of the softmax."""
        self.unknown = vocabulary.index(Vocabulary.unknown)
        """The row that stands for words the vocabulary lacks."""
        self.corpus, self.plan, self.device, self._seed = corpus, plan, device, seed
        self._negatives = None
        if softmax.kind == "sampled":
            self._negatives = Negatives(len(vocabulary), softmax.samples)

    def batches(self, epoch: int, first: int, step: int) -> Generator[ModelBatch, None, None]:
        """The batches of an epoch from a certain one on, which belongs to a certain step.

        They are made by other processes where the model is on a GPU: a thread would keep this one
        from launching the GPU's work.
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
            generator=torch.Generator(),  # the common one would differ after a resume
        )
        for batch in loader:
            yield batch.to(self.device)

    def make(self, batch: TrainingBatch, step: int | None) -> ModelBatch:
        """A batch, on the CPU, with what is drawn for a step of training.

        With None nothing is drawn, and no sentence is read in another case.
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
    """The batches of an epoch by number."""

    def __init__(self, feed: Feed, epoch: int, offset: int) -> None:
        self._feed, self._epoch, self._offset = feed, epoch, offset

    def __getitem__(self, number: int) -> ModelBatch:
        return self._feed.make(self._feed.plan.batch(self._epoch, number), self._offset + number)


def _workers() -> int:
    """Processes that make batches: a quarter of the processors, where processes can be forked."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 0
    return min(4, (os.cpu_count() or 1) // 4)


def _leave_signals(number: int) -> None:
    """Ctrl-C reaches the whole group; the process that trains decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
