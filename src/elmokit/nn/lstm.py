"""The projected, clipped LSTM, step by step: the reference for every faster path."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.kernels.cpu_products import PackedWeights
from elmokit.kernels.weights import LSTMWeights

State = tuple[Tensor, Tensor]
"""The recurrent output h (B, P) and the memory cell c (B, H)."""

# In about 2% of processes, the first tanh that PyTorch asks of MKL comes at low accuracy: off by
# 5e-5 in 27 of 1,500 processes with PyTorch 2.13 and two threads on a Sapphire Rapids CPU, and
# never later. This call is that first one.
torch.tanh(torch.zeros(64))

_GATE_VALUES = 1 << 25  # gates computed ahead: 128 MiB of float32, however long the text


class ProjectedLSTM(nn.Module):
    """One layer of one direction.

    c = σ(f + forget_bias)·c + σ(i)·tanh(j), clipped to ± cell_clip;
    h = projection(σ(o)·tanh(c)), clipped to ± proj_clip. This h is the recurrent state.

    A backward direction is the same LSTM over reversed sentences; see :class:`elmokit.nn.BiLM`.

    Args:
        input_dim: Width of the input.
        cell_dim: Width H of the memory cell.
        output_dim: Width P of the output. If it equals H there is neither a projection nor
            projection clipping, as in TensorFlow's cell.
        cell_clip: Bound of the memory cell, or None.
        proj_clip: Bound of the projected output, or None.
        forget_bias: Added to the forget gate.
    """

    def __init__(
        self,
        input_dim: int,
        cell_dim: int,
        output_dim: int,
        cell_clip: float | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1.0,
    ) -> None:
        super().__init__()
        self.cell_dim, self.output_dim = cell_dim, output_dim
        self.cell_clip, self.proj_clip, self.forget_bias = cell_clip, proj_clip, forget_bias
        # rows of the four gates in the published order: input i, candidate j, forget f, output o
        self.input_weight = nn.Parameter(torch.empty(4 * cell_dim, input_dim))
        self.state_weight = nn.Parameter(torch.empty(4 * cell_dim, output_dim))
        self.bias = nn.Parameter(torch.empty(4 * cell_dim))
        self.projection: nn.Parameter | None = None
        if cell_dim != output_dim:
            self.projection = nn.Parameter(torch.empty(output_dim, cell_dim))
        self._packed = PackedWeights()
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new weights: Glorot-uniform over input and state together, as in TensorFlow."""
        if self.bias.is_meta:  # the weights will be loaded
            return
        rows = self.input_weight.shape[1] + self.output_dim
        bound = math.sqrt(6 / (rows + 4 * self.cell_dim))
        nn.init.uniform_(self.input_weight, -bound, bound)
        nn.init.uniform_(self.state_weight, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection)

    def weights(self) -> LSTMWeights:
        """The weights as the kernels take them."""
        return LSTMWeights(
            self.input_weight,
            self.state_weight,
            self.bias,
            self.projection,
            self.cell_clip,
            self.proj_clip,
            self.forget_bias,
            self._packed,
        )

    def zero_state(self, n: int) -> State:
        """The state before the first token, for n sentences."""
        return self.bias.new_zeros(n, self.output_dim), self.bias.new_zeros(n, self.cell_dim)

    def forward(
        self, x: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Run over a ragged batch.

        Args:
            x: Inputs (B, T, input_dim).
            lengths: Tokens (B,) of each sentence, at most T; padding is not read.
            state: The initial state; None for zeros.

        Returns:
            Outputs (B, T, P), zero in the padding, and the state after each sentence's last token.
        """
        n, time, _ = x.shape
        h, c = state if state is not None else self.zero_state(n)
        x = x.transpose(0, 1)  # (T, B, input_dim)
        active = torch.arange(time, device=x.device)[:, None, None] < lengths[:, None]  # (T, B, 1)
        ahead = max(1, _GATE_VALUES // max(1, n * 4 * self.cell_dim))
        outputs: list[Tensor] = []
        for start in range(0, time, ahead):
            # the input's share of the gates for many steps in one product
            gates = F.linear(x[start : start + ahead], self.input_weight, self.bias)
            for t in range(start, min(start + ahead, time)):
                new_h, new_c = self.step(gates[t - start], h, c)
                h = torch.where(active[t], new_h, h)
                c = torch.where(active[t], new_c, c)
                outputs.append(torch.where(active[t], new_h, 0))
        if not outputs:
            return x.new_zeros(n, 0, self.output_dim), (h, c)
        return torch.stack(outputs, 1), (h, c)

    def step(self, input_gates: Tensor, h: Tensor, c: Tensor) -> State:
        """One token: the input's share of the gates (B, 4H) and the state to the next state."""
        gates = input_gates + F.linear(h, self.state_weight)
        i, j, f, o = gates.to(c.dtype).chunk(4, -1)  # the cell stays float32 under autocast
        c = torch.sigmoid(f + self.forget_bias) * c + torch.sigmoid(i) * torch.tanh(j)
        if self.cell_clip is not None:
            c = c.clamp(-self.cell_clip, self.cell_clip)
        h = torch.sigmoid(o) * torch.tanh(c)
        if self.projection is not None:
            h = F.linear(h, self.projection).to(c.dtype)
            if self.proj_clip is not None:
                h = h.clamp(-self.proj_clip, self.proj_clip)
        return h, c
