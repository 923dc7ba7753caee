"""The biLM of a model that another tool saves: named if it is a bundled one, else copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from elmokit._version import __version__
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, shown
from elmokit.formats import bundled_models, bundled_name, bundled_path, native, read_model
from elmokit.formats.checkpoint import Checkpoint

FOLDER = "bilm"
"""The folder of a copied biLM, inside that of the saved model."""


def write_bilm(checkpoint: Checkpoint, folder: Path) -> dict[str, str]:
    """Copy a biLM without softmax, unless it is a bundled one that has not been changed.

    Args:
        checkpoint: The biLM.
        folder: The folder of the saved model; a copy is written to its folder ``bilm``.

    Returns:
        For the saved model's JSON: the name or the folder, the checksum, and ElmoKit's version.
    """
    checksum = checkpoint.checksum()
    about = {"sha256": checksum, "elmokit_version": __version__}
    name = bundled_name(checkpoint.source)
    # tuned weights differ from the files they came from
    if name is not None and checksum == _bundled_checksum(name):
        return {"name": name, **about}
    # words without a softmax are not worth their space
    native.write(replace(checkpoint, vocabulary=None), folder / FOLDER, overwrite=True)
    return {"folder": FOLDER, **about}


def read_bilm(about: Mapping[str, Any], copied: str | None, where: str, tokenizer: str) -> Elmo:
    """Load the biLM of a saved model, and check that it is the same.

    Args:
        about: What :func:`write_bilm` returned.
        copied: The folder of the copy; None if it does not exist.
        where: The saved model, for errors.
        tokenizer: The name of its tokenizer.
    """
    name = about.get("name")
    path: str | Path | None = copied
    if name is not None:
        path = bundled_path(name) if name in bundled_models() else None
    if path is None:
        raise FormatError(
            f"{where} needs the biLM {shown(name or FOLDER)}, which is missing; copy the folder "
            f"again, or install ElmoKit {shown(about.get('elmokit_version'))}"
        )
    elmo = Elmo.load(path, tokenizer=tokenizer, device="cpu")
    if elmo.checkpoint().without_softmax().checksum() != about.get("sha256"):
        raise FormatError(
            f"{where} was saved with other weights than those of the biLM {shown(str(path))}; copy "
            f"the folder again, or install ElmoKit {shown(about.get('elmokit_version'))}"
        )
    return elmo


@cache  # a training saves many times
def _bundled_checksum(name: str) -> str:
    return read_model(bundled_path(name)).without_softmax().checksum()
