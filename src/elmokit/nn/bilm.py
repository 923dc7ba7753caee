"""The bidirectional language model: token vectors to layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from elmokit import kernels
from elmokit.config import ModelConfig
from elmokit.nn.char_encoder import CharEncoder
from elmokit.nn.lstm import ProjectedLSTM, State
from elmokit.nn.transformer import TransformerBlock, run_direction


@dataclass
class BiLMState:
    """States of all LSTMs for a number of sentences: directions, then layers, of (h, c)."""

    directions: list[list[State]]

    def __len__(self) -> int:
        return len(self.directions[0][0][0])

    def tensors(self) -> list[Tensor]:
        """All of them."""
        return [t for layers in self.directions for state in layers for t in state]

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
    """Token encoder and the two stacks of layers, which never see each other."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        context = config.context
        self.token_encoder = CharEncoder(config.token_encoder, context.projection_dim)

        def stack(reverse: bool) -> nn.ModuleList:
            if context.kind == "transformer":
                sizes = context.projection_dim, context.cell_dim, context.n_heads
                return nn.ModuleList(
                    TransformerBlock(*sizes, reverse) for _ in range(context.n_layers)
                )
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
        """The stacks of LSTMs: forward, and backward where there is one.

        Of a transformer, its blocks, which have what is asked of LSTMs from outside.
        """
        stacks = [self.forward_layers, self.backward_layers]
        return [cast("list[ProjectedLSTM]", list(s)) for s in stacks if s is not None]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def zero_state(self, n: int) -> BiLMState:
        """The state before anything was read, for n sentences."""
        return BiLMState([[lstm.zero_state(n) for lstm in stack] for stack in self.directions])

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor,
        state: BiLMState | None = None,
        upto: int | None = None,
        memory: Tensor | None = None,
    ) -> tuple[Tensor, BiLMState]:
        """All layers of a batch of sentences.

        Args:
            tokens: Token vectors (B, T, P) with those of the two sentence marks.
            lengths: Tokens (B,) of each sentence, marks included; best on the CPU.
            state: What the LSTMs start from; None for zeros.
            upto: The last layer needed: 0 runs no LSTM; None for all.
            memory: Where to put the layers, so that calls can use the same memory again: any
                tensor with as many values as they have, or more. Not with gradients.

        Returns:
            Layers 0 … upto, (upto + 1, B, T, D): the token vector once a direction, then the LSTMs'
            outputs, forward half first. And the state after the sentences, of the layers run.
        """
        context = self.config.context
        tokens = tokens.to(next(self.parameters()).dtype)  # autocast may have made them smaller
        stacks = [stack[: context.n_layers if upto is None else upto] for stack in self.directions]
        starts = None if state is None else state.directions
        sources = [tokens, *self.parameters(), *(state.tensors() if state is not None else ())]
        if torch.is_grad_enabled() and any(t.requires_grad for t in sources):
            found, finals = self._run(stacks, tokens, lengths, starts, None)
            halves = [torch.stack([tokens, *(x.to(tokens.dtype) for x in half)]) for half in found]
            return torch.cat(halves, -1), BiLMState(finals)
        shape = (len(stacks[0]) + 1, *tokens.shape[:2], context.output_dim)
        if memory is None:
            memory = tokens.new_empty(shape)
        layers = memory.view(-1)[: math.prod(shape)].view(shape)
        parts = layers.chunk(len(stacks), -1)  # (upto + 1, B, T, P) each
        for part in parts:
            part[0] = tokens
        with torch.no_grad():
            places = [list(part[1:]) for part in parts]
            _, finals = self._run(stacks, tokens, lengths, starts, places)
        return layers, BiLMState(finals)

    def _run(
        self,
        stacks: list[list[ProjectedLSTM]],
        tokens: Tensor,
        lengths: Tensor,
        starts: list[list[State]] | None,
        places: list[list[Tensor]] | None,
    ) -> tuple[list[list[Tensor]], list[list[State]]]:
        """Arguments and results of :func:`elmokit.kernels.run`."""
        context = self.config.context
        if context.kind == "lstm":
            return kernels.run(stacks, tokens, lengths, starts, context.skip_connections, places)
        found = [
            run_direction(cast("list[TransformerBlock]", stack), tokens, lengths)
            for stack in stacks
        ]
        for layers, rooms in zip(found, places or [], strict=False):
            for layer, room in zip(layers, rooms, strict=True):
                room.copy_(layer)
        return found, [[block.zero_state(len(tokens)) for block in stack] for stack in stacks]
