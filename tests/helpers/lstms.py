"""Random LSTMs with active clips, and a function to run them by any path."""

from __future__ import annotations

import torch

from elmokit.config import ContextConfig
from elmokit.kernels.ragged import Ragged
from elmokit.nn import ProjectedLSTM
from elmokit.nn.bilm import LSTMContext
from elmokit.nn.context import BiLMState


def random_lstm(input_dim, cell_dim, output_dim, clips, seed=0):
    """Weights that fill the cells to their bounds without amplifying rounding errors."""
    torch.manual_seed(seed)
    lstm = ProjectedLSTM(input_dim, cell_dim, output_dim, *clips)
    with torch.no_grad():
        lstm.bias.normal_()
        i, j, f, _ = lstm.bias.chunk(4)
        i += 2
        j.mul_(2)
        f += 3
        lstm.state_weight.mul_(0.3)
        if lstm.projection is not None:
            lstm.projection.mul_(4)
    return lstm.requires_grad_(False)


def make_stacks(directions, layers, width, cell_dim, clips, device="cpu", seed=0):
    """LSTMs of one or two directions, with gradients."""
    return [
        torch.nn.ModuleList(
            random_lstm(width, cell_dim, width, clips, seed + 10 * layer + d)
            .to(device)
            .requires_grad_()
            for layer in range(layers)
        )
        for d in range(directions)
    ]


def make_context(stacks, skip=True):
    return LSTMContext(stacks, ContextConfig(skip_connections=skip))


def make_starts(stacks, n):
    """Random initial states with gradients, in the order of sentences."""

    def random(width):
        device = next(stacks[0].parameters()).device
        return torch.randn(len(stacks), n, width, device=device, requires_grad=True)

    return BiLMState([(random(m.output_dim), random(m.cell_dim)) for m in stacks[0]])


def run(read, tokens, lengths, starts=None, directions=2):
    """Layers (R, B, T, P) and final states, in sentence order, by a function that reads rows."""
    ragged = Ragged(lengths, tokens.shape[1], tokens.device)
    reverse = [False, True][:directions]
    rows = torch.stack([ragged.pack(tokens, r) for r in reverse])
    start = None if starts is None else starts.map(ragged.sort)
    layers, finals = [], []
    for outputs, state in read(rows, ragged, start):
        layers.append(torch.stack([ragged.unpack(outputs[d], r) for d, r in enumerate(reverse)]))
        finals.append(tuple(map(ragged.unsort, state)))
    return layers, finals


def flat(found):
    """All outputs and final states as one list."""
    layers, finals = found
    return [*layers, *(t for state in finals for t in state)]
