"""The bidirectional language model: token vectors to layers, by the fastest way available."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor, nn

from elmokit.arguments import instance
from elmokit.config import ContextConfig, ModelConfig
from elmokit.errors import InputError
from elmokit.kernels import cpu, packed, steps_torch
from elmokit.kernels.gpu import gpu_steps
from elmokit.kernels.parallel import run_all
from elmokit.kernels.ragged import Ragged
from elmokit.nn.char_encoder import CharEncoder
from elmokit.nn.context import BiLMState, Context, LayerRows
from elmokit.nn.lstm import ProjectedLSTM
from elmokit.nn.transformer import TransformerContext

_SIDE_BY_SIDE = 8
"""From this many sentences on, both directions run side by side on a CPU. A few sentences are bound
by reading the weights, and each core's cache holds more of them if all threads share a product."""


class LSTMContext:
    """Projected LSTMs as a :class:`~elmokit.nn.context.Context`.

    Args:
        stacks: The LSTMs of each direction.
        config: Whether layers add their input to their output.
    """

    def __init__(self, stacks: Sequence[nn.ModuleList], config: ContextConfig) -> None:
        self._stacks, self._skip = stacks, config.skip_connections

    @staticmethod
    def layers(config: ContextConfig) -> nn.ModuleList:
        """New LSTMs for one direction."""
        return nn.ModuleList(
            ProjectedLSTM(
                config.projection_dim,
                config.cell_dim,
                config.projection_dim,
                config.cell_clip,
                config.proj_clip,
                config.forget_bias,
            )
            for _ in range(config.n_layers)
        )

    def zero_state(self, n: int) -> BiLMState:
        """See :class:`~elmokit.nn.context.Context`."""
        shape = len(self._stacks), n
        return BiLMState(
            [
                (m.bias.new_zeros(*shape, m.output_dim), m.bias.new_zeros(*shape, m.cell_dim))
                for m in self._lstms()[0]
            ]
        )

    def read(
        self,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState | None = None,
        upto: int | None = None,
        dropout: float = 0.0,
        precision: str = "float32",
    ) -> Iterator[LayerRows]:
        """See :class:`~elmokit.nn.context.Context`. Chooses the fastest kernel that can run."""
        weights = [[lstm.weights() for lstm in stack[:upto]] for stack in self._lstms()]
        start = self.zero_state(len(ragged.lengths)) if start is None else start
        sources = [
            rows,
            *start.tensors,
            *(t for stack in weights for w in stack for t in w.tensors),
        ]
        gradients = torch.is_grad_enabled() and any(t.requires_grad for t in sources)
        autocast = torch.is_autocast_enabled(rows.device.type)
        on_cpu = rows.device.type == "cpu"
        is_float32 = all(t.dtype == torch.float32 for t in sources)
        if on_cpu and is_float32 and not (gradients or autocast or dropout):
            return self._read_on_cpu(weights, rows, ragged, start, precision)
        rounded = rows
        if autocast:
            rounded = rows.to(torch.get_autocast_dtype(rows.device.type))
        elif precision == "bfloat16" and not gradients:
            rounded = rows.to(torch.bfloat16)
        fused = gpu_steps(rows.device) is not None
        if packed.can_run(weights, rounded) and (fused or gradients):
            return self._read_packed(weights, rounded, ragged, start, gradients, dropout)
        return self.read_plainly(rows, ragged, start, upto, dropout)

    def _read_on_cpu(
        self,
        weights: packed.Stacks,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState,
        precision: str,
    ) -> Iterator[LayerRows]:
        tasks = [
            partial(
                cpu.run_stack,
                stack,
                rows[d],
                ragged.counts,
                [(h[d], c[d]) for h, c in start.layers[: len(stack)]],
                self._skip,
                precision,
            )
            for d, stack in enumerate(weights)
        ]
        many = len(ragged.lengths) >= _SIDE_BY_SIDE
        with torch.no_grad():
            found = run_all(tasks, rows.device) if many else [task() for task in tasks]
        for layer in zip(*found, strict=True):
            outputs, h, c = zip(*layer, strict=True)
            yield LayerRows(outputs, (torch.stack(h), torch.stack(c)))

    def _read_packed(
        self,
        weights: packed.Stacks,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState,
        gradients: bool,
        dropout: float,
    ) -> Iterator[LayerRows]:
        steps = gpu_steps(rows.device) or steps_torch
        starts = [(h.float(), c.float()) for h, c in start.layers]
        layers = packed.run(weights, rows, ragged, starts, self._skip, gradients, steps, dropout)
        while True:
            # Triton launches on the current device, which a caller may change between layers
            with torch.cuda.device(rows.device) if rows.is_cuda else nullcontext():
                layer = next(layers, None)
            if layer is None:
                return
            outputs, h, c = layer
            yield LayerRows(outputs, (h, c))

    def read_plainly(
        self,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState | None = None,
        upto: int | None = None,
        dropout: float = 0.0,
    ) -> Iterator[LayerRows]:
        """As :meth:`read`, step by step: the reference, and the way for other types and devices."""
        start = self.zero_state(len(ragged.lengths)) if start is None else start
        xs = [ragged.unpack(x) for x in rows]
        lengths = ragged.lengths.to(rows.device)
        for number, lstms in enumerate(list(zip(*self._lstms(), strict=True))[:upto]):
            h, c = (ragged.unsort(t) for t in start.layers[number])
            outputs, states = [], []
            for d, lstm in enumerate(lstms):
                x = nn.functional.dropout(xs[d], dropout, dropout > 0)
                out, state = lstm(x, lengths, (h[d], c[d]))
                xs[d] = out + x if self._skip and number > 0 else out
                outputs.append(ragged.pack(xs[d]))
                states.append(state)
            h, c = (ragged.sort(torch.stack(some)) for some in zip(*states, strict=True))
            yield LayerRows(outputs, (h, c))

    def _lstms(self) -> list[list[ProjectedLSTM]]:
        return [[m for m in stack if isinstance(m, ProjectedLSTM)] for stack in self._stacks]


_CONTEXTS: dict[str, type[LSTMContext] | type[TransformerContext]] = {
    "lstm": LSTMContext,
    "transformer": TransformerContext,
}


class BiLM(nn.Module):
    """The token encoder and the layers of both directions, which never see each other."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = instance(config, "config", ModelConfig, "a ModelConfig")
        context = config.context
        self.precision = "float32"
        """What kernels without gradients round the LSTMs' weights to: float32, int8 or bfloat16."""
        self.token_encoder = CharEncoder(config.token_encoder, context.projection_dim)
        layers = _CONTEXTS[context.kind].layers
        self.forward_layers = layers(context)
        self.backward_layers = layers(context) if context.bidirectional else None

    @property
    def directions(self) -> list[nn.ModuleList]:
        """The layers of the forward direction, and of the backward one if the model has it."""
        return [s for s in (self.forward_layers, self.backward_layers) if s is not None]

    @property
    def context(self) -> Context:
        """The layers of all directions, run together."""
        return _CONTEXTS[self.config.context.kind](self.directions, self.config.context)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def zero_state(self, n: int) -> BiLMState:
        """The state before the first token, for n sentences."""
        return self.context.zero_state(n)

    def read(
        self,
        rows: Tensor,
        ragged: Ragged,
        start: BiLMState | None = None,
        upto: int | None = None,
        dropout: float = 0.0,
    ) -> Iterator[LayerRows]:
        """The layers over packed rows, which may differ between the directions.

        Arguments and results are those of :meth:`elmokit.nn.context.Context.read`.
        """
        return self.context.read(rows, ragged, start, upto, dropout, self.precision)

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
            tokens: Token vectors (B, T, P), including the two sentence marks.
            lengths: Tokens (B,) of each sentence, marks included; best on the CPU.
            state: The initial state; None for zeros.
            upto: The last layer needed: 0 runs no LSTM; None for all.
            memory: Where to write the layers, to reuse memory between calls: any tensor with at
                least as many values. Ignored if gradients are needed.

        Returns:
            Layers 0 … upto, (upto + 1, B, T, D): the token vector once per direction, then the
            outputs of the layers, forward half first; and the state after each sentence.
        """
        width = self.config.context.projection_dim
        if tokens.dim() != 3 or tokens.shape[2] != width or lengths.shape != tokens.shape[:1]:
            raise InputError(
                f"tokens must have the shape (B, T, {width}) and lengths (B,), not "
                f"{tuple(tokens.shape)} and {tuple(lengths.shape)}"
            )
        tokens = tokens.to(next(self.parameters()).dtype)  # autocast may have made them smaller
        ragged = Ragged(lengths, tokens.shape[1], tokens.device)
        reverse = [False, True][: self.config.context.n_directions]
        rows = torch.stack([ragged.pack(tokens, r) for r in reverse])
        start = None if state is None else state.map(ragged.sort)
        sources = [tokens, *self.parameters(), *(() if state is None else state.tensors)]
        finals = []
        if torch.is_grad_enabled() and any(t.requires_grad for t in sources):
            found = [torch.cat([tokens for _ in reverse], -1)]
            for outputs, (h, c) in self.read(rows, ragged, start, upto):
                halves = [ragged.unpack(outputs[d], r) for d, r in enumerate(reverse)]
                found.append(torch.cat(halves, -1).to(tokens.dtype))
                finals.append((ragged.unsort(h), ragged.unsort(c)))
            return torch.stack(found), BiLMState(finals)
        n_layers = self.config.context.n_layers if upto is None else upto
        shape = (n_layers + 1, *tokens.shape[:2], self.config.context.output_dim)
        if memory is None:
            memory = tokens.new_empty(shape)
        layers = memory.view(-1)[: math.prod(shape)].view(shape)
        parts = layers.chunk(len(reverse), -1)  # (upto + 1, B, T, P) each
        with torch.no_grad():
            for part in parts:
                part[0] = tokens
            for k, (outputs, (h, c)) in enumerate(self.read(rows, ragged, start, upto), 1):
                for d, (part, r) in enumerate(zip(parts, reverse, strict=True)):
                    ragged.unpack_into(outputs[d], r, part[k])
                finals.append((ragged.unsort(h), ragged.unsort(c)))
        return layers, BiLMState(finals)
