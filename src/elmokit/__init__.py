"""ElmoKit: all of ELMo, in Python, today.

>>> from elmokit import Elmo
>>> elmo = Elmo.load("a-model-folder")                     # doctest: +SKIP
>>> vectors = elmo.encode(["I went to the bank"])          # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from elmokit._version import __version__

if TYPE_CHECKING:
    from elmokit.config import ModelConfig
    from elmokit.elmo import Elmo
    from elmokit.errors import ElmoKitError
    from elmokit.inference.scoring import Perplexity, Score
    from elmokit.inference.states import CarriedState

_HOMES = {
    "CarriedState": "elmokit.inference.states",
    "Elmo": "elmokit.elmo",
    "ElmoKitError": "elmokit.errors",
    "ModelConfig": "elmokit.config",
    "Perplexity": "elmokit.inference.scoring",
    "Score": "elmokit.inference.scoring",
}

__all__ = [
    "CarriedState",
    "Elmo",
    "ElmoKitError",
    "ModelConfig",
    "Perplexity",
    "Score",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import public names when first used, so that the command line starts without torch."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'elmokit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
