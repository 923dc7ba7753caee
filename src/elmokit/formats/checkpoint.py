"""A model in memory, under ElmoKit's own names: what readers return and writers take."""

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
"""Prefix of the softmax's tensor names."""

MODEL_FILES = {
    *("config.json", "model.safetensors", "README.md"),
    *("vocabulary.txt", "characters.txt", "words.txt"),
    *("options.json", "weights.hdf5", "softmax.hdf5", "vocab.txt"),
}
"""Every file that a writer creates. A folder with other files is never overwritten."""


@dataclass
class Checkpoint:
    """The settings, weights and word lists of a model."""

    config: ModelConfig
    tensors: dict[str, Tensor]
    """Weights by their names in :class:`elmokit.nn.BiLM`; those of the softmax with a prefix."""
    vocabulary: list[str] | None = None
    """Vocabulary of the softmax, in the order of its rows."""
    characters: list[str] = field(default_factory=list)
    """Characters of a model with the alphabet codepoints."""
    words: list[str] = field(default_factory=list)
    """Words with an embedding of their own."""
    format: str = "native"
    """Format of the files."""
    source: str = ""
    """Path of the files."""

    def alphabet(self) -> Alphabet:
        """Return the alphabet that converts words into this model's ids."""
        encoder = self.config.token_encoder
        if encoder.alphabet == "codepoints":
            return CodepointAlphabet(encoder, self.characters, self.words)
        return Utf8Alphabet(encoder)

    @property
    def n_parameters(self) -> int:
        """Number of parameters, without the softmax and the zero rows for padding."""
        encoder = self.config.token_encoder
        padding = encoder.character_dim + encoder.word_dim
        shapes = self.expected_shapes().items()
        return sum(math.prod(s) for name, s in shapes if not name.startswith(SOFTMAX)) - padding

    def expected_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every tensor that the config requires."""
        with torch.device("meta"):
            shapes = {k: tuple(v.shape) for k, v in BiLM(self.config).state_dict().items()}
            if self.config.vocabulary_size:
                softmax = make_softmax(self.config)
                shapes |= {SOFTMAX + k: tuple(v.shape) for k, v in softmax.state_dict().items()}
        return shapes

    def check(self) -> Checkpoint:
        """Raise unless every tensor exists, has its shape and is finite; return self."""
        expected = self.expected_shapes()
        if missing := sorted(set(expected) - set(self.tensors)):
            raise ShapeError(f"{self.source} has no weights {', '.join(missing)}")
        if extra := sorted(set(self.tensors) - set(expected)):
            raise ShapeError(
                f"{self.source} has weights that its config does not require: {', '.join(extra)}"
            )
        for name, tensor in self.tensors.items():
            if tuple(tensor.shape) != expected[name]:
                raise ShapeError(
                    f"{self.source}: config.json requires {name} of shape {expected[name]}, but "
                    f"the weights have {tuple(tensor.shape)}"
                )
            check_finite(tensor, name, self.source)
        return self

    def checksum(self) -> str:
        """Return the SHA-256 of all names, shapes and weights; it is the same in every format."""
        digest = hashlib.sha256()
        for name in sorted(self.tensors):
            tensor = self.tensors[name]
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.detach().cpu().float().contiguous().numpy().data)
        return digest.hexdigest()


def check_finite(tensor: Tensor, name: str, source: str) -> None:
    """Raise if a weight is NaN or infinite."""
    finite = torch.isfinite(tensor)
    if not finite.all():
        n = int((~finite).sum())
        raise FormatError(
            f"{source} has {n} NaN or infinite values in {name}; the file is damaged or its "
            "training diverged, so use another copy or an earlier checkpoint"
        )
