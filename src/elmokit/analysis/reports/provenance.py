"""Model and options behind some numbers, to store with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmokit._version import __version__
from elmokit.elmo import Elmo
from elmokit.formats import model_name


def provenance(elmo: Elmo, **given: Any) -> dict[str, Any]:
    """Describe the model and the options of an analysis as plain values for JSON.

    Args:
        elmo: The model, identified by name or path and by the checksum of its weights.
        **given: Texts, sentences and options, by name.
    """
    model = model_name(elmo.source) or elmo.format
    return {
        "elmokit": __version__,
        "model": model,
        "weights": elmo.checkpoint().checksum(),
        "precision": elmo.precision,
        "tokenizer": elmo.tokenizer.name,
        **{name: _plain(value) for name, value in given.items()},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
