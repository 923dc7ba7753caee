"""What every reader gives and every writer takes: a model's parts under ElmoKit's own names."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import FormatError, ShapeError
from elmokit.nn.bilm import BiLM
from elmokit.nn.softmax import make_softmax
from elmokit.text.characters import Alphabet, CodepointAlphabet, Utf8Alphabet

SOFTMAX = "softmax."
"""Prefix of the names of the softmax's tensors."""

MODEL_FILES = {
    *("config.json", "model.safetensors", "README.md"),
    *("vocabulary.txt", "characters.txt", "words.txt"),
    *("options.json", "weights.hdf5", "softmax.hdf5", "vocab.txt"),
}
"""Every file a writer makes, and so what a folder may hold that is to be overwritten."""


@dataclass
class Checkpoint:
    """A model in memory, not yet running."""

    config: ModelConfig
    tensors: dict[str, Tensor]
    """Weights by the names of :class:`elmokit.nn.BiLM`, and those of the softmax."""
    vocabulary: list[str] | None = None
    """Words of the softmax in the order of its rows."""
    characters: list[str] = field(default_factory=list)
    """Characters of a model with the codepoints alphabet."""
    words: list[str] = field(default_factory=list)
    """Words with vectors of their own."""
    format: str = "native"
    """What the files were."""
    source: str = ""
    """Where they were."""

    def alphabet(self) -> Alphabet:
        """What turns words into this model's ids."""
        encoder = self.config.token_encoder
        if encoder.alphabet == "codepoints":
            return CodepointAlphabet(encoder, self.characters, self.words)
        return Utf8Alphabet(encoder)

    @property
    def n_parameters(self) -> int:
        """Parameters without the softmax, and without the rows of zeros for padding."""
        encoder = self.config.token_encoder
        padding = encoder.character_dim + encoder.word_dim
        shapes = self.expected_shapes().items()
        return sum(math.prod(s) for name, s in shapes if not name.startswith(SOFTMAX)) - padding

    def expected_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor the config calls for."""
        with torch.device("meta"):
            shapes = {k: tuple(v.shape) for k, v in BiLM(self.config).state_dict().items()}
            if self.config.vocabulary_size:
                softmax = make_softmax(self.config)
                shapes |= {SOFTMAX + k: tuple(v.shape) for k, v in softmax.state_dict().items()}
        return shapes

    def check(self) -> Checkpoint:
        """Raise unless every tensor is there, has its shape and is finite; return self."""
        expected = self.expected_shapes()
        if missing := sorted(set(expected) - set(self.tensors)):
            raise ShapeError(f"{self.source} has no weights {', '.join(missing)}")
        if extra := sorted(set(self.tensors) - set(expected)):
            raise ShapeError(f"{self.source} has weights its config does not call for: {extra}")
        for name, tensor in self.tensors.items():
            if tuple(tensor.shape) != expected[name]:
                raise ShapeError(
                    f"{self.source}: config.json calls for {name} of shape {expected[name]}, but "
                    f"the weights have {tuple(tensor.shape)}"
                )
            check_finite(tensor, name, self.source)
        return self

    def checksum(self) -> str:
        """SHA-256 over names, shapes and bytes of all weights; the same in every format."""
        digest = hashlib.sha256()
        for name in sorted(self.tensors):
            tensor = self.tensors[name]
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.detach().cpu().float().contiguous().numpy().data)
        return digest.hexdigest()


def check_finite(tensor: Tensor, name: str, source: str) -> None:
    """Raise where a weight is NaN or infinite."""
    finite = torch.isfinite(tensor)
    if not finite.all():
        n = int((~finite).sum())
        raise FormatError(
            f"{source} has {n} values that are NaN or infinite in {name}; the file is damaged or "
            "its training diverged, so use another copy or an earlier checkpoint"
        )
