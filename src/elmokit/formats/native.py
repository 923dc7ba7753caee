"""ElmoKit's own format: config.json, model.safetensors, word lists, and a model card.

A model that one version writes can be read by all later versions of the same major version.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import BinaryIO

from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmokit._version import __version__
from elmokit.config import ModelConfig
from elmokit.errors import ConfigError, FormatError, shortened, shown
from elmokit.formats.checkpoint import MODEL_FILES, Checkpoint, compare_shapes
from elmokit.formats.model_card import model_card
from elmokit.formats.rounding import StoredKind, restored, restored_shapes, rounded
from elmokit.formats.source import Source, own_errors
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
    label = source.label("config.json")
    values = source.json("config.json")
    if "model_type" in values:
        raise FormatError(
            f"{label} belongs to a model of transformers; load an ELMo model of that kind with "
            "elmokit.integrations.transformers.ElmoModel.from_pretrained, and convert it by to_elmo"
        )
    version = values.pop("format_version", None)
    values.pop("elmokit_version", None)
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{label} has format_version {shown(version)}, but ElmoKit {__version__} reads "
            f"version {FORMAT_VERSION}; update ElmoKit"
        )
    try:
        config = ModelConfig.from_dict(values)
    except ConfigError as error:
        raise FormatError(f"{label}: {shortened(str(error), 400)}") from error
    tensors = _read_weights(source, config)
    encoder = config.token_encoder
    expected = {
        "vocabulary": config.vocabulary_size,
        "characters": encoder.n_characters if encoder.alphabet == "codepoints" else 0,
        "words": encoder.n_words,
    }
    lists: dict[str, list[str]] = {}
    for key, n in expected.items():
        name = _LISTS[key]
        lists[key] = source.lines(name, n) if n and name in source else []
        if len(lists[key]) != n:
            raise FormatError(
                f"{source.path}/{name} must have {n} lines, as config.json says, but has "
                f"{len(lists[key])}"
            )
    return Checkpoint(
        config,
        tensors,
        lists["vocabulary"] or None,
        lists["characters"],
        lists["words"],
        format=f"native ({source.kind})",
        source=str(source.path),
    )


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
        write_tensors(tensors, new / "model.safetensors", new / "config.json")
        for key, name in _LISTS.items():
            if items := getattr(checkpoint, key):
                text = "".join(item + "\n" for item in items)
                (new / name).write_bytes(text.encode("utf-8"))
        card = model_card(checkpoint, folder.name)
        (new / "README.md").write_text(card, encoding="utf-8", errors="replace")


def write_tensors(tensors: dict[str, Tensor], file: Path, like: Path) -> None:
    """Write a file of safetensors.

    Args:
        tensors: What to write.
        file: Where.
        like: A file with the permissions to give it: safetensors lets only its owner read it.
    """
    try:
        save_file(tensors, file, metadata={"format": "pt"})
    except SafetensorError as error:  # such as a full disk
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else None, str(error)) from error
    shutil.copymode(like, file)


def _read_weights(source: Source, config: ModelConfig) -> dict[str, Tensor]:
    name = "model.safetensors"
    label = source.label(name)
    with (
        own_errors(f"{label} is not a complete safetensors file", "copy it again"),
        source.open(name) as file,
    ):
        compare_shapes(config, restored_shapes(_header(file), label), label)
        path = source.local_path(name)
        file.seek(0)
        tensors = load_bytes(file.read()) if path is None else load_file(path)
        return restored(tensors)


def _header(file: BinaryIO) -> dict[str, StoredKind]:
    """Return type and shape of each tensor, to compare with the config before reading them."""
    size = int.from_bytes(file.read(8), "little")
    end = file.seek(0, os.SEEK_END)
    file.seek(8)
    values = json.loads(file.read(min(size, end)))
    return {
        name: (str(value["dtype"]), tuple(map(int, value["shape"])))
        for name, value in values.items()
        if name != "__metadata__"
    }
