"""Random LSTMs whose clips are active."""

import torch

from elmokit.nn import ProjectedLSTM


def random_lstm(input_dim, cell_dim, output_dim, clips, reverse, seed=0):
    """Weights that fill the cells to their bounds without growing rounding errors."""
    torch.manual_seed(seed)
    lstm = ProjectedLSTM(input_dim, cell_dim, output_dim, *clips, reverse=reverse)
    with torch.no_grad():
        lstm.bias.normal_()
        i, j, f, _ = lstm.bias.chunk(4)
        i += 2
        j *= 2
        f += 3
        lstm.state_weight *= 0.3
        if lstm.projection is not None:
            lstm.projection *= 4
    return lstm.requires_grad_(False)
