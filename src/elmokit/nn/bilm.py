"""The bidirectional language model: token vectors to layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from elmokit.config import ModelConfig
from elmokit.kernels import run_lstm
from elmokit.kernels.parallel import run_all
from elmokit.nn.char_encoder import CharEncoder
from elmokit.nn.lstm import ProjectedLSTM, State


@dataclass
class BiLMState:
    """States of all LSTMs for a number of sentences: directions, then layers, of (h, c)."""

    directions: list[list[State]]

    def __len__(self) -> int:
        return len(self.directions[0][0][0])

    def map(self, change: Callable[[Tensor], Tensor]) -> BiLMState:
        """The same with every tensor (B, …) changed."""
        return BiLMState(
            [[(change(h), change(c)) for h, c in layers] for layers in self.directions]
        )

    @staticmethod
    def cat(states: Sequence[BiLMState]) -> BiLMState:
        """States of several batches as those of one."""
        first = states[0]
        return BiLMState(
            [
                [
                    (
                        torch.cat([s.directions[d][layer][0] for s in states]),
                        torch.cat([s.directions[d][layer][1] for s in states]),
                    )
                    for layer in range(len(first.directions[d]))
                ]
                for d in range(len(first.directions))
            ]
        )


class BiLM(nn.Module):
    """Token encoder and the two stacks of LSTMs, which never see each other."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        context = config.context
        self.token_encoder = CharEncoder(config.token_encoder, context.projection_dim)

        def stack(reverse: bool) -> nn.ModuleList:
            return nn.ModuleList(
                ProjectedLSTM(
                    context.projection_dim,
                    context.cell_dim,
                    context.projection_dim,
                    context.cell_clip,
                    context.proj_clip,
                    context.forget_bias,
                    reverse,
                )
                for _ in range(context.n_layers)
            )

        self.forward_layers = stack(reverse=False)
        self.backward_layers = stack(reverse=True) if context.bidirectional else None

    @property
    def directions(self) -> list[list[ProjectedLSTM]]:
        """The stacks of LSTMs: forward, and backward where there is one."""
        stacks = [self.forward_layers, self.backward_layers]
        return [cast("list[ProjectedLSTM]", list(s)) for s in stacks if s is not None]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.directions[0][0].bias.device

    def zero_state(self, n: int) -> BiLMState:
        """The state before anything was read, for n sentences."""
        return BiLMState([[lstm.zero_state(n) for lstm in stack] for stack in self.directions])

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor,
        state: BiLMState | None = None,
        upto: int | None = None,
    ) -> tuple[list[Tensor], BiLMState]:
        """All layers of a batch of sentences.

        Args:
            tokens: Token vectors (B, T, P) with those of the two sentence marks.
            lengths: Tokens (B,) of each sentence, marks included.
            state: What the LSTMs start from; None for zeros.
            upto: The last layer needed: 0 runs no LSTM; None for all.

        Returns:
            Layers 0 … upto, each (B, T, D): the token vector once a direction, then the LSTMs'
            outputs, forward half first. And the state after the sentences, of the layers run.
        """
        upto = self.config.context.n_layers if upto is None else upto
        tasks = [
            partial(
                self._run_direction,
                stack[:upto],
                tokens,
                lengths,
                None if state is None else state.directions[d],
            )
            for d, stack in enumerate(self.directions)
        ]
        outputs, states = zip(*run_all(tasks, tokens.device), strict=True)
        merged = [torch.cat(halves, -1) for halves in zip(*outputs, strict=True)]
        return merged, BiLMState(list(states))

    def _run_direction(
        self,
        stack: list[ProjectedLSTM],
        tokens: Tensor,
        lengths: Tensor,
        starts: list[State] | None,
    ) -> tuple[list[Tensor], list[State]]:
        """Token vectors and the output of each LSTM of a direction, (B, T, P), and their states."""
        x, layers, finals = tokens, [tokens], []
        for number, lstm in enumerate(stack):
            out, final = run_lstm(lstm, x, lengths, None if starts is None else starts[number])
            # the residual skips the first layer
            x = out + x if self.config.context.skip_connections and number > 0 else out
            layers.append(x)
            finals.append(final)
        return layers, finals
