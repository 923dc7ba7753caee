"""Encoders of task models: bidirectional LSTMs and GRUs over tokens, a CNN over characters."""

from __future__ import annotations

import math
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.nn.dropout import Dropout, drop
from elmokit.tasks.heads.masked import masked_max


class LockedDropout(nn.Module):
    """Variational dropout: the same dimensions are zero at all tokens of a sentence.

    Args:
        share: Share of dimensions set to zero in training.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        if not self.training or not self.share:
            return x
        return x * drop(torch.ones_like(x[:, :1]), self.share)

    def extra_repr(self) -> str:
        """The share, for ``print(module)``."""
        return f"share={self.share}"


@torch.no_grad()
def draw_weights(module: nn.Module, gates: int = 4) -> None:
    """Draw the weights of LSTMs (4 gates) or GRUs (3).

    Glorot-uniform for inputs, orthogonal for states. Biases are 0, and 1 for an LSTM's forget gate.
    """
    for name, parameter in module.named_parameters():
        if parameter.is_meta:  # the weights will be loaded
            continue
        if "bias" in name:
            nn.init.zeros_(parameter)
            if "bias_ih" in name and gates == 4:
                parameter.chunk(4)[1].fill_(1)  # the gates are i, f, g, o
            continue
        initialise = nn.init.xavier_uniform_ if "weight_ih" in name else nn.init.orthogonal_
        for gate in parameter.chunk(gates):
            initialise(gate)


def turned(mask: Tensor) -> Tensor:
    """Positions (B, T) of the tokens of each row in reverse; the padding stays where it is."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def taken(x: Tensor, places: Tensor) -> Tensor:
    """The vectors (B, T, D) at some positions (B, T) of each row."""
    return x.gather(1, places[..., None].expand_as(x))


class _BidirectionalEncoder(nn.Module):
    """A stack of bidirectional recurrent layers with locked dropout between them.

    Args:
        input_dim: Width of the input.
        hidden_dim: Width H of each direction.
        n_layers: The number of layers.
        dropout: Share of dimensions dropped between layers; the input and the output are kept.
    """

    kind: ClassVar[type[nn.LSTM] | type[nn.GRU]]
    gates: ClassVar[int]

    def __init__(
        self, input_dim: int, hidden_dim: int, n_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.output_dim = 2 * hidden_dim
        # Each layer has a module for each direction, forward first: cuDNN wants the weights of a
        # call in one piece.
        self.layers = nn.ModuleList(
            nn.ModuleList(self.kind(width, hidden_dim, batch_first=True) for _ in range(2))
            for width in [input_dim] + [2 * hidden_dim] * (n_layers - 1)
        )
        self.dropout = LockedDropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        draw_weights(self, self.gates)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """States (B, T, 2H), forward half first, zero in the padding.

        Padding does not change the states before it, so each direction reads padded rows; the
        backward one reads their tokens in reverse order. Packed rows take longer: on a CPU their
        gradient, on a GPU everything.

        Args:
            x: Inputs (B, T, input_dim).
            mask: True (B, T) at tokens, which are at the start of each row. Rows can be empty.
        """
        if not mask.numel():
            return x.new_zeros(*mask.shape, self.output_dim)
        order = turned(mask)
        for k, layer in enumerate(self.layers):
            ahead, back = cast(nn.ModuleList, layer)
            x = self.dropout(x) if k else x
            x = torch.cat([ahead(x)[0], taken(back(taken(x, order))[0], order)], -1)
        return x.masked_fill(~mask[..., None], 0)


class BiLSTMEncoder(_BidirectionalEncoder):
    """A stack of bidirectional LSTMs with locked dropout between its layers."""

    kind, gates = nn.LSTM, 4


class BiGRUEncoder(_BidirectionalEncoder):
    """A stack of bidirectional GRUs with locked dropout between its layers."""

    kind, gates = nn.GRU, 3


class CharCNN(nn.Module):
    """Character features of a word: one convolution and its maximum (Ma and Hovy, 2016).

    The filters read every window that contains a character of the word, also those that reach
    over its edges.

    Args:
        n_characters: Ids are 1 … n_characters; 0 is padding.
        character_dim: Width of a character vector; 30 in the paper.
        filters: F, the number of filters; 30 in the paper.
        width: Characters that a filter reads; 3 in the paper.
        dropout: Share of the values of character vectors dropped in training.
    """

    def __init__(
        self,
        n_characters: int,
        character_dim: int = 30,
        filters: int = 30,
        width: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.width, self.output_dim = width, filters
        self.embedding = nn.Embedding(n_characters + 1, character_dim, padding_idx=0)
        self.convolution = nn.Linear(character_dim * width, filters)
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new weights as in the paper."""
        weight = self.embedding.weight
        bound = math.sqrt(3 / weight.shape[1])
        nn.init.uniform_(weight, -bound, bound)
        weight[0] = 0
        nn.init.xavier_uniform_(self.convolution.weight)
        nn.init.zeros_(self.convolution.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Features (B, T, F) of words; zero for words without characters.

        Args:
            ids: Character ids (B, T, C).
        """
        shape, reach = ids.shape[:2], self.width - 1
        ids = F.pad(ids.flatten(0, 1), (reach, reach))  # (B · T, C + 2 · reach)
        characters = self.dropout(self.embedding(ids))
        windows = characters.unfold(1, self.width, 1).flatten(2)  # (B · T, positions, dim · width)
        real = (ids != 0).unfold(1, self.width, 1).any(2)  # (B · T, positions)
        # maximum before tanh: the same result with fewer evaluations
        return masked_max(self.convolution(windows), real).tanh().view(*shape, self.output_dim)
