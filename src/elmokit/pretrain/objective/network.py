"""A biLM with its softmax, as it is trained: batches of codes in, losses out."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ModelConfig
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.kernels import gpu_steps, packed, steps_torch
from elmokit.kernels.ragged import Ragged
from elmokit.nn.bilm import BiLM
from elmokit.nn.softmax import AdaptiveSoftmax, make_softmax
from elmokit.nn.transformer import TransformerBlock, run_blocks
from elmokit.pretrain.data.feed import ModelBatch, WordTable
from elmokit.pretrain.objective.losses import adaptive_loss, full_loss, log_expected, sampled_loss
from elmokit.pretrain.recipe import SoftmaxSettings
from elmokit.pretrain.run.stopwatch import Stopwatch

States = list[tuple[Tensor, Tensor]]
"""Of each layer, (2, B, P) and (2, B, H), what the next batch starts from."""


class PretrainModel(nn.Module):
    """The biLM and its softmax.

    Args:
        config: Sizes, with those of the vocabulary.
        softmax: How words are predicted in training.
        dropout: Share of each layer's input and of the top output set to zero in training.
    """

    def __init__(self, config: ModelConfig, softmax: SoftmaxSettings, dropout: float) -> None:
        super().__init__()
        self.config, self.dropout = config, dropout
        self.sampled = softmax.kind == "sampled"
        """Whether words that are drawn stand for all, in training."""
        self.bilm = BiLM(config)
        self.softmax = make_softmax(config)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over the weights of a checkpoint; a softmax that it lacks stays as it is."""
        named = {k if k.startswith(SOFTMAX) else f"bilm.{k}": v for k, v in tensors.items()}
        self.load_state_dict(self.state_dict() | named)

    def tensors(self) -> dict[str, Tensor]:
        """The weights as a checkpoint has them, on the CPU."""
        own = self.bilm.state_dict() | {
            SOFTMAX + k: v for k, v in self.softmax.state_dict().items()
        }
        return {k: v.detach().float().cpu() for k, v in own.items()}

    def forward(
        self,
        batch: ModelBatch,
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

    def _encode(self, batch: ModelBatch, table: WordTable) -> Tensor:
        """Token vectors (W, P) of the distinct words."""
        parts, start = [], 0
        for end, columns in batch.groups:
            ids = table.rows(batch.words[start:end], columns)
            parts.append(self.bilm.token_encoder(ids))
            start = end
        return torch.cat(parts)

    def _loss(self, h: Tensor, batch: ModelBatch, direction: int) -> Tensor:
        targets = batch.targets[direction]
        if isinstance(self.softmax, AdaptiveSoftmax):
            return adaptive_loss(self.softmax.inner, h, targets)
        if self.sampled and self.training:
            log_q = log_expected(len(self.softmax.bias), batch.tries[direction], h.device)
            return sampled_loss(self.softmax, h, targets, batch.drawn[direction], log_q)
        return full_loss(self.softmax, h, targets)
