"""The input of every task model: [static vector; ELMo] of each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.errors import ConfigError
from elmokit.nn.dropout import Dropout
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.tasks.task_settings import InputSettings
from elmokit.text.tokenizers import Span

Sentences = Sequence[Sequence[str]]
"""The sentences of a text, each a list of words."""


@dataclass
class WordBatch:
    """Texts of a batch as the input layer takes them. A text is one row, sentence by sentence."""

    words: list[list[str]]
    """Words of each row."""
    mask: Tensor
    """True (B, T) at words."""
    lengths: Tensor
    """Words of each row (B,) on the CPU: nobody need wait for a GPU to count them."""
    layers: Tensor | None
    """ELMo's layers (K, N, D) of the N words of all rows, without padding."""
    slots: Tensor
    """Where these words are (N,), as numbers row · T + column."""
    static: Tensor | None
    """Rows (B, T) of the table of static vectors; 0 for unknown words and padding."""
    places: Sequence[tuple[Span, ...]] = ()
    """Marked words (start, end) of each example; the input layer ignores them."""
    details: Sequence[Any] = ()
    """What the task itself knows of each example; the input layer ignores it."""

    def padded(self, x: Tensor) -> Tensor:
        """Vectors (N, D) of the words in their places (B, T, D), with zeros between them."""
        rows = x.new_zeros(self.mask.numel(), x.shape[-1])
        return rows.index_copy(0, self.slots, x).view(*self.mask.shape, -1)


class StaticTable(nn.Module):
    """Static vectors by word. They do not learn; an unknown word has zeros.

    Args:
        words: W distinct words.
        vectors: Their vectors (W, S).
    """

    def __init__(self, words: Sequence[str], vectors: npt.NDArray[np.floating]) -> None:
        super().__init__()
        self.words = list(words)
        self._row = {word: i + 1 for i, word in enumerate(self.words)}
        zeros = np.zeros((1, vectors.shape[1]), np.float32)
        table = np.concatenate([zeros, vectors.astype(np.float32, copy=False)])
        self.register_buffer("vectors", torch.from_numpy(table), persistent=False)

    @property
    def dim(self) -> int:
        """Width S of a vector."""
        return int(self.known().shape[1])

    def known(self) -> Tensor:
        """The vectors (W, S) of all words."""
        return cast(Tensor, self.vectors)[1:]

    def rows(self, words: Sequence[str]) -> list[int]:
        """Return the row of each word: its own, that of its lower case, or 0."""
        return [self._row.get(word) or self._row.get(word.lower(), 0) for word in words]

    def forward(self, rows: Tensor) -> Tensor:
        """Vectors (B, T, S) of rows (B, T)."""
        return F.embedding(rows, cast(Tensor, self.vectors))


class WordInput(nn.Module):
    """Static vectors and mixes of ELMo's layers, with dropout.

    Args:
        settings: Which vectors, and where ELMo enters.
        n_layers: Layers of the biLM, token layer included.
        dim: Their width D.
        static: Static vectors from a file, if any.
    """

    def __init__(
        self, settings: InputSettings, n_layers: int, dim: int, static: StaticTable | None
    ) -> None:
        super().__init__()
        self.settings, self.static, self._dim = settings, static, dim
        chosen = chosen_layers(settings.layers, n_layers)
        self.layers = sorted({*chosen, *([0] if settings.vectors == "token" else [])})
        """Numbers of the layers that a batch must have, K of them."""
        self._chosen = [self.layers.index(number) for number in chosen]
        learned = settings.layers == "mix"
        places = {"input": ["input"], "output": ["output"], "both": ["input", "output"]}
        self.mixes = nn.ModuleDict()
        for place in places[settings.at] if chosen else []:
            mix = ScalarMix(len(chosen), l2=settings.mix_l2)
            mix.weights.requires_grad_(learned)
            self.mixes[place] = mix
        self.dropout = Dropout(settings.dropout)
        self.static_dropout = Dropout(settings.static_dropout)

    @property
    def input_dim(self) -> int:
        """Width X of the input of the task's encoder."""
        dim = self._dim * ("input" in self.mixes) + self._dim * (self.settings.vectors == "token")
        return dim + (self.static.dim if self.static is not None else 0)

    @property
    def output_dim(self) -> int:
        """Width of what is added to the encoder's output; 0 for nothing."""
        return self._dim if "output" in self.mixes else 0

    def forward(self, batch: WordBatch) -> tuple[Tensor, Tensor | None]:
        """Input (B, T, X) of the encoder, and what joins its output (B, T, D) or None."""
        parts, layers = [], batch.layers
        if self.static is not None and batch.static is not None:
            parts.append(self.static_dropout(self.static(batch.static)))
        if layers is not None and self.settings.layer_norm:
            layers = F.layer_norm(layers, layers.shape[-1:])
        if self.settings.vectors == "token" and layers is not None:
            parts.append(batch.padded(self.dropout(layers[self.layers.index(0)])))
        mixed = {place: self._mix(place, batch, layers) for place in self.mixes}
        if "input" in mixed:
            parts.append(mixed["input"])
        return torch.cat(parts, -1), mixed.get("output")

    def penalty(self) -> Tensor:
        """λ · Σ w² of all mixes, a term of the loss."""
        mixes = [cast(ScalarMix, mix).penalty() for mix in self.mixes.values()]
        return torch.stack(mixes).sum() if mixes else torch.zeros(())

    def shares(self) -> dict[str, list[float]]:
        """Return the softmax of the mix weights by place, and γ as the last number."""
        found = {}
        for place, module in self.mixes.items():
            mix = cast(ScalarMix, module)
            shares = torch.softmax(mix.weights.detach(), 0).tolist()
            found[place] = [*shares, float(mix.gamma.detach())]
        return found

    def _mix(self, place: str, batch: WordBatch, layers: Tensor | None) -> Tensor:
        assert layers is not None
        every = len(self._chosen) == len(self.layers)
        layers = layers if every else layers[self._chosen]  # the latter is a copy
        return batch.padded(self.dropout(self.mixes[place](layers)))


def chosen_layers(layers: str, n_layers: int) -> list[int]:
    """Return the numbers of the layers that a setting names."""
    if layers == "none":
        return []
    if layers in ("mix", "average"):
        return list(range(n_layers))
    chosen = n_layers - 1 if layers == "top" else int(layers)
    if chosen >= n_layers:
        raise ConfigError(
            f"input.layers must be a layer from 0 to {n_layers - 1}, mix, average, top or none, "
            f"not {layers}"
        )
    return [chosen]
