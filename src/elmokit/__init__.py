"""ElmoKit: ELMo (contextual word vectors) in today's Python and PyTorch.

>>> from elmokit import Elmo
>>> elmo = Elmo.load()  # the bundled English model
>>> vectors = elmo.encode(["I went to the bank to deposit money"])
>>> vectors[0].shape
(8, 768)

The names listed here are the public Python interface; they follow semantic versioning.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from elmokit._version import __version__

if TYPE_CHECKING:
    from elmokit.config import ContextConfig, MixConfig, ModelConfig, TokenEncoderConfig
    from elmokit.elmo import Elmo, State, Text
    from elmokit.errors import (
        ConfigError,
        DataWarning,
        ElmoKitError,
        FormatError,
        InputError,
        LanguageWarning,
        MissingExtraError,
        ModelError,
        ModelNotFoundError,
        OutOfMemoryError,
        OutputError,
        ShapeError,
        TrainingError,
        UnsupportedModelError,
    )
    from elmokit.formats.checkpoint import Checkpoint
    from elmokit.inference.layers import Layers
    from elmokit.inference.perplexity import Perplexity
    from elmokit.inference.scoring import Score
    from elmokit.inference.states import CarriedState
    from elmokit.nn.bilm import BiLM
    from elmokit.nn.context import BiLMState
    from elmokit.nn.embedding import ElmoEmbedding, ElmoOutput
    from elmokit.nn.scalar_mix import ScalarMix
    from elmokit.text.characters import Alphabet
    from elmokit.text.tokenizers import Tokenizer
    from elmokit.text.vocabulary import Vocabulary

_NAMES = {
    "elmokit.config": (
        "ContextConfig",
        "MixConfig",
        "ModelConfig",
        "TokenEncoderConfig",
    ),
    "elmokit.elmo": (
        "Elmo",
        "State",
        "Text",
    ),
    "elmokit.errors": (
        "ConfigError",
        "DataWarning",
        "ElmoKitError",
        "FormatError",
        "InputError",
        "LanguageWarning",
        "MissingExtraError",
        "ModelError",
        "ModelNotFoundError",
        "OutOfMemoryError",
        "OutputError",
        "ShapeError",
        "TrainingError",
        "UnsupportedModelError",
    ),
    "elmokit.formats.checkpoint": ("Checkpoint",),
    "elmokit.inference.layers": ("Layers",),
    "elmokit.inference.perplexity": ("Perplexity",),
    "elmokit.inference.scoring": ("Score",),
    "elmokit.inference.states": ("CarriedState",),
    "elmokit.nn.bilm": ("BiLM",),
    "elmokit.nn.context": ("BiLMState",),
    "elmokit.nn.embedding": (
        "ElmoEmbedding",
        "ElmoOutput",
    ),
    "elmokit.nn.scalar_mix": ("ScalarMix",),
    "elmokit.text.characters": ("Alphabet",),
    "elmokit.text.tokenizers": ("Tokenizer",),
    "elmokit.text.vocabulary": ("Vocabulary",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Alphabet",
    "BiLM",
    "BiLMState",
    "CarriedState",
    "Checkpoint",
    "ConfigError",
    "ContextConfig",
    "DataWarning",
    "Elmo",
    "ElmoEmbedding",
    "ElmoKitError",
    "ElmoOutput",
    "FormatError",
    "InputError",
    "LanguageWarning",
    "Layers",
    "MissingExtraError",
    "MixConfig",
    "ModelConfig",
    "ModelError",
    "ModelNotFoundError",
    "OutOfMemoryError",
    "OutputError",
    "Perplexity",
    "ScalarMix",
    "Score",
    "ShapeError",
    "State",
    "Text",
    "TokenEncoderConfig",
    "Tokenizer",
    "TrainingError",
    "UnsupportedModelError",
    "Vocabulary",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use, which keeps the command line free of torch."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'elmokit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
