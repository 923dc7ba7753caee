"""ElmoKit's own format: config.json, model.safetensors, word lists, and a model card.

A model that one version writes can be read by all later versions of the same major version.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmokit._version import __version__
from elmokit.config import ModelConfig
from elmokit.errors import ConfigError, FormatError
from elmokit.formats.checkpoint import MODEL_FILES, Checkpoint
from elmokit.formats.model_card import model_card
from elmokit.formats.rounding import restored, rounded
from elmokit.formats.source import Source
from elmokit.io.atomic import new_folder

LOOKS_FOR = "config.json and model.safetensors (ElmoKit)"
"""The files that identify this format."""
FORMAT_VERSION = 1
_LISTS = {"vocabulary": "vocabulary.txt", "characters": "characters.txt", "words": "words.txt"}


def matches(source: Source) -> bool:
    """Return whether a folder or archive has this format."""
    return "config.json" in source and "model.safetensors" in source


def read(source: Source) -> Checkpoint:
    """Read a model from a folder or archive."""
    label = f"{source.path}/config.json"
    values = source.json("config.json")
    version = values.pop("format_version", None)
    values.pop("elmokit_version", None)
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{label} has format_version {version}, but ElmoKit {__version__} reads "
            f"version {FORMAT_VERSION}; update ElmoKit"
        )
    try:
        config = ModelConfig.from_dict(values)
    except ConfigError as error:
        raise FormatError(f"{label}: {error}") from error
    lists = {
        key: source.text(name).split("\n")[:-1] for key, name in _LISTS.items() if name in source
    }
    checkpoint = Checkpoint(
        config,
        _read_weights(source),
        lists.get("vocabulary"),
        lists.get("characters", []),
        lists.get("words", []),
        format=f"native ({source.kind})",
        source=str(source.path),
    )
    encoder = config.token_encoder
    expected = {
        "vocabulary": config.vocabulary_size,
        "characters": encoder.n_characters if encoder.alphabet == "codepoints" else 0,
        "words": encoder.n_words,
    }
    for key, n in expected.items():
        if n and len(lists.get(key, ())) != n:
            raise FormatError(
                f"{source.path}/{_LISTS[key]} must have {n} lines, as config.json says, but has "
                f"{len(lists.get(key, ()))}"
            )
    return checkpoint


def write(
    checkpoint: Checkpoint, folder: Path, overwrite: bool = False, dtype: str = "float32"
) -> None:
    """Write a model to a folder.

    Args:
        checkpoint: The model.
        folder: Folder to create.
        overwrite: Replace an existing model folder.
        dtype: Precision of the stored weights: float32 (exact), float16, int8 or int4; see
            :mod:`~elmokit.formats.rounding`.
    """
    values = {"format_version": FORMAT_VERSION, "elmokit_version": __version__}
    values |= checkpoint.config.to_dict()
    tensors = rounded(checkpoint.tensors, dtype)
    with new_folder(folder, overwrite, MODEL_FILES) as new:
        (new / "config.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        save_file(tensors, new / "model.safetensors", metadata={"format": "pt"})
        # safetensors makes the file readable by its owner only
        shutil.copymode(new / "config.json", new / "model.safetensors")
        for key, name in _LISTS.items():
            if items := getattr(checkpoint, key):
                text = "".join(item + "\n" for item in items)
                (new / name).write_bytes(text.encode("utf-8"))
        (new / "README.md").write_text(model_card(checkpoint, folder.name), encoding="utf-8")


def _read_weights(source: Source) -> dict[str, Tensor]:
    name = "model.safetensors"
    try:
        if path := source.local_path(name):
            tensors = load_file(path)
        else:
            with source.open(name) as file:
                tensors = load_bytes(file.read())
    except (SafetensorError, ValueError, OSError) as error:
        raise FormatError(
            f"{source.path}/{name} is not a complete safetensors file ({error}); copy it again"
        ) from error
    try:
        return restored(tensors)
    except RuntimeError as error:
        raise FormatError(
            f"{source.path}/{name} has scales that do not fit its weights; copy it again"
        ) from error
