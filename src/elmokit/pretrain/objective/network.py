"""The network in training, a biLM with its softmax: batches of codes in, losses out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ModelConfig
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.kernels.ragged import Ragged
from elmokit.nn.bilm import BiLM
from elmokit.nn.context import BiLMState
from elmokit.nn.softmax import AdaptiveSoftmax, make_softmax
from elmokit.nn.words import encode_ids
from elmokit.pretrain.data.feed import ModelBatch, WordTable
from elmokit.pretrain.objective.losses import adaptive_loss, full_loss, log_expected, sampled_loss
from elmokit.pretrain.objective.stopwatch import Stopwatch
from elmokit.pretrain.recipe_sections import SoftmaxSettings

States = list[tuple[Tensor, Tensor]]
"""For each layer h (R, B, P) and c (R, B, H): what the next batch starts from."""


class PretrainModel(nn.Module):
    """The biLM and its softmax.

    Args:
        config: Sizes, including the vocabulary's.
        softmax: How words are predicted in training.
        dropout: Dropout rate of each layer's input and of the top output, in training.
    """

    def __init__(self, config: ModelConfig, softmax: SoftmaxSettings, dropout: float) -> None:
        super().__init__()
        self.config, self.dropout = config, dropout
        self.sampled = softmax.kind == "sampled"
        """Whether training samples words instead of using the whole vocabulary."""
        self.bilm = BiLM(config)
        self.softmax = make_softmax(config)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Load the weights of a checkpoint; softmax weights that it lacks stay as they are."""
        named = {k if k.startswith(SOFTMAX) else f"bilm.{k}": v for k, v in tensors.items()}
        self.load_state_dict(self.state_dict() | named)

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights by their names in a checkpoint, on the CPU."""
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

        Training uses the softmax of the recipe; evaluation always uses the full one. The stopwatch
        records the time of each part, backward pass included.
        """
        dropout = self.dropout if self.training else 0.0
        words = self._encode(batch, table)
        if watch is not None:
            watch.mark("token encoder")
            watch.mark_on_the_way_back(words, "context")
        n_directions = self.config.context.n_directions
        x = F.embedding(batch.inputs[:n_directions], words)  # (R, N, P)
        ragged = Ragged(batch.lengths, int(batch.lengths.max()), x.device)
        start = None if starts is None else BiLMState(starts)
        finals: States = []
        for outputs, state in self.bilm.read(x, ragged, start, dropout=dropout):
            x = outputs if isinstance(outputs, Tensor) else torch.stack(list(outputs))
            finals.append((state[0].detach(), state[1].detach()))
        x = F.dropout(x, dropout) if dropout else x
        if watch is not None:
            watch.mark("context")
            watch.mark_on_the_way_back(x, "softmax")
        losses = [self._loss(x[d], batch, d) for d in range(n_directions)]
        if watch is not None:
            watch.mark("softmax")
        return torch.stack(losses), finals

    def _encode(self, batch: ModelBatch, table: WordTable) -> Tensor:
        """Token vectors (W, P) of the distinct words."""
        ids = table.ids[batch.words]
        return encode_ids(self.bilm.token_encoder, ids, batch.groups, table.n_columns)

    def _loss(self, h: Tensor, batch: ModelBatch, direction: int) -> Tensor:
        targets = batch.targets[direction]
        if isinstance(self.softmax, AdaptiveSoftmax):
            return adaptive_loss(self.softmax.inner, h, targets)
        if self.sampled and self.training:
            log_q = log_expected(len(self.softmax.bias), batch.tries[direction], h.device)
            return sampled_loss(self.softmax, h, targets, batch.drawn[direction], log_q)
        return full_loss(self.softmax, h, targets)
