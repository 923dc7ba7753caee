"""A model in memory, under ElmoKit's own names: what readers return and writers take."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from elmokit.arguments import instance
from elmokit.config import MixConfig, ModelConfig
from elmokit.errors import FormatError, ShapeError, shortened
from elmokit.formats.value_range import check_range
from elmokit.nn.bilm import BiLM
from elmokit.nn.softmax import make_softmax
from elmokit.text.characters import Alphabet, CodepointAlphabet, SimplifiedAlphabet, Utf8Alphabet

SOFTMAX = "softmax."
"""Prefix of the softmax's tensor names."""

SUMS = "SHA256SUMS"
"""File with the SHA-256 of the others, in the format of sha256sum; models on a hub have it."""

MODEL_FILES = {
    *("config.json", "model.safetensors", "README.md", SUMS),
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

    def __post_init__(self) -> None:
        instance(self.config, "config", ModelConfig, "a ModelConfig")
        instance(self.tensors, "tensors", dict, "tensors by their names")

    def alphabet(self) -> Alphabet:
        """Return the alphabet that converts words into this model's ids."""
        encoder = self.config.token_encoder
        alphabet: Alphabet = (
            CodepointAlphabet(encoder, self.characters, self.words)
            if encoder.alphabet == "codepoints"
            else Utf8Alphabet(encoder)
        )
        return SimplifiedAlphabet(alphabet) if self.config.script == "simplified" else alphabet

    @property
    def n_parameters(self) -> int:
        """Number of parameters, without the softmax and the zero rows for padding."""
        encoder = self.config.token_encoder
        padding = encoder.character_dim + encoder.word_dim
        shapes = self.expected_shapes().items()
        return sum(math.prod(s) for name, s in shapes if not name.startswith(SOFTMAX)) - padding

    def expected_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every tensor that the config requires."""
        return dict(required_shapes(self.config))

    def check(self) -> Checkpoint:
        """Raise unless every tensor exists, has its shape, and no text can cause an overflow."""
        found = {name: tuple(tensor.shape) for name, tensor in self.tensors.items()}
        compare_shapes(self.config, found, self.source)
        maxima = {k: largest(tensor, k, self.source) for k, tensor in self.tensors.items()}
        check_range(self.config, self.tensors, maxima, self.source)
        return self

    def without_softmax(self) -> Checkpoint:
        """The part that gives vectors but no probabilities: about half of the bundled models."""
        tensors = {k: v for k, v in self.tensors.items() if not k.startswith(SOFTMAX)}
        config = replace(self.config, vocabulary_size=0, softmax_cutoffs=())
        return replace(self, config=config, tensors=tensors, vocabulary=None)

    def checksum(self) -> str:
        """Return the SHA-256 of all names, shapes and weights; it is the same in every format."""
        digest = hashlib.sha256()
        for name in sorted(self.tensors):
            tensor = self.tensors[name]
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.detach().cpu().float().contiguous().numpy().data)
        return digest.hexdigest()


def required_shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and shape of every tensor that a config requires.

    One layer of each kind is built and stands for the others. A config may require thousands, and
    the first one that a file lacks is enough to refuse it.
    """
    encoder, context = config.token_encoder, config.context
    all_filters = ((encoder.widest, encoder.n_filters),) if encoder.filters else ()
    one = replace(
        config,
        token_encoder=replace(encoder, filters=all_filters, n_highway=min(1, encoder.n_highway)),
        context=replace(context, n_layers=1),
        mix=MixConfig(),
    )
    with torch.device("meta"):
        tensors = BiLM(one).state_dict()
        if config.vocabulary_size:
            softmax = make_softmax(config).state_dict()
            tensors |= {SOFTMAX + name: tensor for name, tensor in softmax.items()}
    repeated = {
        "token_encoder.highways.0.": encoder.n_highway,
        "forward_layers.0.": context.n_layers,
        "backward_layers.0.": context.n_layers,
    }
    for name, tensor in tensors.items():
        if name.startswith("token_encoder.convolutions."):
            continue
        prefix = next((p for p in repeated if name.startswith(p)), None)
        if prefix is None:
            yield name, tuple(tensor.shape)
        else:
            for i in range(repeated[prefix]):
                yield f"{prefix[:-2]}{i}.{name.removeprefix(prefix)}", tuple(tensor.shape)
    for i, (width, count) in enumerate(encoder.filters):
        yield f"token_encoder.convolutions.{i}.weight", (count, encoder.character_dim, width)
        yield f"token_encoder.convolutions.{i}.bias", (count,)


def compare_shapes(config: ModelConfig, found: Mapping[str, tuple[int, ...]], source: str) -> None:
    """Raise unless a file has the tensors that its config requires, and no others.

    Args:
        config: The config.
        found: Shapes in the file by name.
        source: The file, for errors.
    """
    names = set()
    for name, shape in required_shapes(config):
        if name not in found:
            raise ShapeError(f"{source} has no weights {name}, which its config requires")
        if found[name] != shape:
            raise ShapeError(
                f"{source}: the config requires {name} of shape {shape}, but the weights have "
                f"{shortened(str(found[name]))}"
            )
        names.add(name)
    if extra := found.keys() - names:
        raise ShapeError(
            f"{source} has {len(extra)} weights that its config does not require, such as "
            f"{shortened(min(extra))}"
        )


def largest(tensor: Tensor, name: str, source: str) -> float:
    """Return the largest absolute value of a tensor; raise if one is NaN or infinite."""
    if not tensor.numel():
        return 0.0
    low, high = tensor.aminmax()  # one pass; both are NaN if a value is
    found = max(-float(low), float(high))
    if not math.isfinite(found):
        n = int((~torch.isfinite(tensor)).sum())
        raise FormatError(
            f"{source} has {n} NaN or infinite values in {name}; the file is damaged or its "
            "training diverged, so use another copy or an earlier checkpoint"
        )
    return found
