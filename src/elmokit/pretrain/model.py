"""A biLM with its softmax, as it is trained: batches of codes in, losses out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ModelConfig
from elmokit.data.batches import TrainingBatch
from elmokit.devices import to_device
from elmokit.kernels import gpu_steps, packed, steps_torch
from elmokit.kernels.ragged import Ragged
from elmokit.nn.bilm import BiLM
from elmokit.nn.softmax import AdaptiveSoftmax, make_softmax
from elmokit.nn.transformer import TransformerBlock, run_blocks
from elmokit.pretrain.losses import Negatives, adaptive_loss, full_loss, sampled_loss
from elmokit.pretrain.recipe import SoftmaxSettings
from elmokit.pretrain.stopwatch import Stopwatch
from elmokit.text.characters import Alphabet

States = list[tuple[Tensor, Tensor]]
"""Of each layer, (2, B, P) and (2, B, H), what the next batch starts from."""

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
        self._word_column = self.ids.shape[1] - columns  # 1 where words have ids of their own
        lengths = np.fromiter((len(w.encode("utf-8", "ignore")) for w in words), int, len(words))
        self.needed = np.minimum(columns, lengths + 2 + widest)  # columns of each word
        self._columns = columns

    def groups(
        self, codes: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], list[tuple[int, int]]]:
        """Codes sorted by the columns they need, and (end, columns) of each group of them."""
        needed = self.needed[codes]
        order = np.argsort(needed, kind="stable")
        codes, needed = codes[order], needed[order]
        limits = [*(c for c in _COLUMNS if c < self._columns), self._columns]
        ends = np.searchsorted(needed, limits, "right")
        groups, before = [], 0
        for end, columns in zip(ends.tolist(), limits, strict=True):
            if end > before:
                groups.append((end, columns))
                before = end
        return codes, groups

    def rows(self, codes: Tensor, columns: int) -> Tensor:
        """Ids (W, C) of some words, as many columns as asked for."""
        ids = self.ids[codes]
        if columns == self._columns:
            return ids
        if self._word_column:
            return torch.cat([ids[:, :columns], ids[:, -1:]], 1)
        return ids[:, :columns]


@dataclass
class DeviceBatch:
    """A batch where it will be computed."""

    words: Tensor
    """Codes (W,) of the distinct words read."""
    groups: list[tuple[int, int]]
    """(end, columns) of words that go through the CNN together."""
    inputs: Tensor
    """Which of them (2, N) is read."""
    targets: Tensor
    """Rows (2, N) of the softmax to be predicted."""
    lengths: Tensor
    """Steps (B,) of each row, on the CPU."""
    negatives: list[tuple[Tensor, Tensor]]
    """By direction, words drawn (S,) and log of how often each (V,) was expected; none if full."""
    total: int
    carried: bool


class BatchMaker:
    """Batches of codes to tensors on the device, in a thread beside the training.

    Args:
        table: The words' characters.
        targets: By code, the row of the softmax.
        softmax: How the words are predicted.
        vocabulary_size: Rows of the softmax.
        seed: Decides what is drawn.
        device: Where to.
    """

    def __init__(
        self,
        table: WordTable,
        targets: npt.NDArray[np.int32],
        softmax: SoftmaxSettings,
        vocabulary_size: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self._table, self.targets, self._seed, self._device = table, targets, seed, device
        self._negatives = None
        if softmax.kind == "sampled":
            self._negatives = Negatives(vocabulary_size, softmax.samples)

    def __call__(self, batch: TrainingBatch, step: int | None) -> DeviceBatch:
        """A batch with what is drawn for a step; nothing is drawn where that is None."""
        codes, inverse = np.unique(batch.inputs, return_inverse=True)
        words, groups = self._table.groups(codes)
        place = np.empty(int(codes[-1]) + 1, np.int64)
        place[words] = np.arange(len(words))
        inputs = place[codes][inverse].reshape(batch.inputs.shape)
        negatives = []
        if self._negatives is not None and step is not None:
            rng = np.random.default_rng([self._seed, 1, step])
            for _ in range(2):
                drawn, log_q = self._negatives.draw(rng)
                negatives.append((self._send(drawn), self._send(log_q)))
        return DeviceBatch(
            self._send(words.astype(np.int64)),
            groups,
            self._send(inputs),
            self._send(self.targets[batch.targets].astype(np.int64)),
            torch.from_numpy(batch.lengths),
            negatives,
            batch.total,
            batch.carried,
        )

    def _send(self, values: npt.NDArray[np.generic]) -> Tensor:
        return to_device(torch.from_numpy(values), self._device)


class PretrainModel(nn.Module):
    """The biLM and its softmax.

    Args:
        config: Sizes, with those of the vocabulary.
        softmax: How words are predicted in training.
        dropout: Share of each layer's input and of the top output set to zero in training.
    """

    def __init__(self, config: ModelConfig, softmax: SoftmaxSettings, dropout: float) -> None:
        super().__init__()
        self.config, self.kind, self.dropout = config, softmax.kind, dropout
        self.bilm = BiLM(config)
        self.softmax = make_softmax(config)

    def forward(
        self,
        batch: DeviceBatch,
        table: WordTable,
        starts: States | None,
        watch: Stopwatch | None = None,
    ) -> tuple[Tensor, States]:
        """Σ −log p of each direction (2,), and the states after the batch.

        In training by the softmax trained with; in evaluation by the whole one. The watch is told
        where the time goes, on the way back too.
        """
        dropout = self.dropout if self.training else 0.0
        words = self._encode(batch, table)
        if watch is not None:
            watch.mark("token encoder")
            watch.mark_on_the_way_back(words, "context")
        stacks = self.bilm.directions
        x = F.embedding(batch.inputs[: len(stacks)], words)  # (2, N, P)
        ragged = Ragged(batch.lengths, int(batch.lengths.max()), x.device)
        steps = gpu_steps(x.device) or steps_torch
        skip = self.config.context.skip_connections
        gradients = torch.is_grad_enabled()
        if gradients and torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        finals: States = []
        if self.config.context.kind == "transformer":
            x = self._attend(x, ragged, dropout)
        else:
            for rows, h, c in packed.run_rows(
                stacks, x, ragged, starts, skip, gradients, steps, dropout
            ):
                x = rows
                finals.append((h.detach(), c.detach()))
        x = F.dropout(x, dropout) if dropout else x
        if watch is not None:
            watch.mark("context")
            watch.mark_on_the_way_back(x, "softmax")
        losses = [self._loss(x[d], batch, d) for d in range(len(stacks))]
        if watch is not None:
            watch.mark("softmax")
        return torch.stack(losses), finals

    def _attend(self, x: Tensor, ragged: Ragged, dropout: float) -> Tensor:
        """Top outputs (2, N, P) of a transformer; rows are in reading order already."""
        outputs = []
        for rows, stack in zip(x, self.bilm.directions, strict=True):
            tokens = F.dropout(ragged.unpack(rows, reverse=False), dropout, dropout > 0)
            top = run_blocks(cast("list[TransformerBlock]", stack), tokens, dropout)[-1]
            outputs.append(ragged.pack(top, reverse=False))
        return torch.stack(outputs)

    def _encode(self, batch: DeviceBatch, table: WordTable) -> Tensor:
        """Token vectors (W, P) of the distinct words."""
        parts, start = [], 0
        for end, columns in batch.groups:
            ids = table.rows(batch.words[start:end], columns)
            parts.append(self.bilm.token_encoder(ids))
            start = end
        return torch.cat(parts)

    def _loss(self, h: Tensor, batch: DeviceBatch, direction: int) -> Tensor:
        targets = batch.targets[direction]
        if isinstance(self.softmax, AdaptiveSoftmax):
            return adaptive_loss(self.softmax.inner, h, targets)
        if self.kind == "sampled" and self.training:
            return sampled_loss(self.softmax, h, targets, *batch.negatives[direction])
        return full_loss(self.softmax, h, targets)
