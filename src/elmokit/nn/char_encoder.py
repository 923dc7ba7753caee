"""The character CNN, which turns the characters of a word into its token vector."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import TokenEncoderConfig


class Highway(nn.Module):
    """y = g·relu(transform(x)) + (1 − g)·x with g = sigmoid(gate(x)).

    The published files call the gate "carry", although it weights the transformed side.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(…, F) to (…, F)."""
        g = torch.sigmoid(self.gate(x))
        return g * torch.relu(self.transform(x)) + (1 - g) * x


class Convolution(nn.Module):
    """Filters of one width over the characters of a word, and their maximum over positions.

    Computed as a matrix product: PyTorch's convolution silently uses TF32 on a GPU, which is a
    hundred times less precise.
    """

    def __init__(self, character_dim: int, count: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.empty(count, character_dim, width))
        self.bias = nn.Parameter(torch.empty(count))

    def forward(self, characters: Tensor) -> Tensor:
        """(W, C, character_dim) to (W, count)."""
        windows = characters.unfold(1, self.width, 1).flatten(2)  # (W, positions, dim · width)
        # the bias is the same at every position, so it is added after the maximum
        return F.linear(windows, self.weight.flatten(1)).amax(1) + self.bias


class CharEncoder(nn.Module):
    """Convolutions of several widths, max-pooling, activation, highway layers, projection.

    Args:
        config: The sizes of the encoder.
        output_dim: P, the width of a token vector.
    """

    def __init__(self, config: TokenEncoderConfig, output_dim: int) -> None:
        super().__init__()
        self.config = config
        features = config.n_filters + config.word_dim
        self.character_embedding = _embedding(config.n_characters, config.character_dim)
        self.word_embedding = (
            _embedding(config.n_words, config.word_dim) if config.word_dim else None
        )
        self.convolutions = nn.ModuleList(
            Convolution(config.character_dim, count, width) for width, count in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.n_highway))
        # The published layout omits the projection if it would not change the width; models with
        # word vectors always have one.
        self.projection = (
            nn.Linear(features, output_dim) if config.word_dim or features != output_dim else None
        )
        if not self.convolutions:  # then it is unused
            self.character_embedding.requires_grad_(False)
        self.activation = {"relu": torch.relu, "tanh": torch.tanh}[config.activation]
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise the weights as bilm-tf does."""
        if self.character_embedding.weight.is_meta:  # weights will be loaded
            return
        for embedding in (self.character_embedding, self.word_embedding):
            if embedding is not None:
                nn.init.uniform_(embedding.weight, -1, 1)
                embedding.weight[0] = 0
        for convolution in self.convolutions:
            assert isinstance(convolution, Convolution)
            nn.init.uniform_(convolution.weight, -0.05, 0.05)
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            for linear in (highway.gate, highway.transform):
                nn.init.normal_(linear.weight, 0, 1 / math.sqrt(self.config.n_filters))
                nn.init.zeros_(linear.bias)
            nn.init.constant_(highway.gate.bias, -2)
        if self.projection is not None:
            nn.init.normal_(self.projection.weight, 0, self.projection.in_features**-0.5)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Token vectors (…, P).

        Args:
            ids: Character ids (…, C), or (…, C + 1) with the word id in the last column. C may be
                cut to the longest word with its markers, plus the width of the widest filter: all
                further windows contain padding only and cannot change the maximum.
        """
        shape, ids = ids.shape[:-1], ids.flatten(0, -2)
        features = []
        if self.word_embedding is not None:
            features.append(self.word_embedding(ids[:, -1]))
            ids = ids[:, :-1]
        if self.convolutions:
            characters = self.character_embedding(ids)  # (W, C, character_dim)
            # maximum before activation: the same result with far fewer activations
            x = self.activation(self._convolve(characters))
            for highway in self.highways:
                x = highway(x)
            features.append(x)
        tokens = torch.cat(features, -1) if len(features) > 1 else features[0]
        if self.projection is not None:
            tokens = self.projection(tokens)
        return tokens.unflatten(0, shape) if len(shape) != 1 else tokens

    def _convolve(self, characters: Tensor) -> Tensor:
        """Maxima (W, F) of all filters over characters (W, C, character_dim)."""
        # One product for all filters takes a sixth more operations, but fewer kernel launches,
        # which take most of the time on a GPU.
        if characters.is_cuda and characters.shape[1] < self.config.max_characters:
            return self.convolve_at_once(characters)
        return torch.cat([convolution(characters) for convolution in self.convolutions], -1)

    def convolve_at_once(self, characters: Tensor) -> Tensor:
        """As the separate convolutions, in one product; for ids cut as in :meth:`forward`.

        Here narrow filters skip the last positions, where the widest does not fit. Cut ids end in a
        whole window of padding, so these positions contain padding only.
        """
        convolutions = cast("list[Convolution]", list(self.convolutions))
        widest = self.config.widest
        weights = [F.pad(c.weight, (0, widest - c.width)) for c in convolutions]
        windows = characters.unfold(1, widest, 1).flatten(2)  # (W, positions, dim · widest)
        # the backward pass of max() is faster than that of amax(), which must search for ties
        maxima = F.linear(windows, torch.cat(weights).flatten(1)).max(1).values
        return maxima + torch.cat([c.bias for c in convolutions])


def _embedding(n: int, dim: int) -> nn.Embedding:
    """Uninitialised embeddings for ids 1 … n; id 0 is padding and stays zero."""
    return nn.Embedding(n + 1, dim, padding_idx=0, _weight=torch.empty(n + 1, dim))
