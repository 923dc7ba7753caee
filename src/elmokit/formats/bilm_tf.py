"""The published format of AllenNLP, bilm-tf and NLPL: options.json and HDF5 weights."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import FormatError, ShapeError, UnsupportedModelError
from elmokit.formats.bilm_tf_layout import (
    read_options,
    softmax_table,
    weights_table,
    write_options,
)
from elmokit.formats.checkpoint import MODEL_FILES, Checkpoint
from elmokit.formats.source import Source, parse_json, read_text, require_file
from elmokit.formats.tables import Entry, read_all, write_all
from elmokit.io.atomic import new_folder, reserve_space

LOOKS_FOR = "an options JSON and an HDF5 weights file (AllenNLP, bilm-tf, NLPL)"
"""The files that identify this format."""


@dataclass(frozen=True)
class _File:
    """A file on disk, or a file of a source.

    Args:
        label: Name for errors.
        source: Folder or archive; None for a path on disk.
        name: Name in the source, or path.
    """

    label: str
    source: Source | None
    name: str

    def open(self) -> BinaryIO:
        return self.source.open(self.name) if self.source else open(self.name, "rb")

    def text(self) -> str:
        with self.open() as file:
            return read_text(file, self.label)


def matches(source: Source) -> bool:
    """Return whether a folder or archive has this format."""
    return bool(_options_names(source)) and any(_is_hdf5(name) for name in source.names)


def read(source: Source) -> Checkpoint:
    """Read a model from a folder or archive, with its softmax and vocabulary if present."""
    options = _options_names(source)
    if len(options) > 1:
        raise FormatError(
            f"{source.path} has several options files ({', '.join(options)}); choose one with "
            "options= and weights="
        )
    weights, softmaxes = [], []
    for name in filter(_is_hdf5, source.names):
        with _hdf5(_at(source, name)) as file:
            if "char_embed" in file:
                weights.append(name)
            elif "softmax" in file:
                softmaxes.append(name)
    if len(weights) != 1:
        found = ", ".join(weights or filter(_is_hdf5, source.names))
        raise FormatError(
            f"{source.path} must have exactly one HDF5 file with a dataset char_embed, but has "
            f"{len(weights)} ({found}); choose one with options= and weights="
        )
    vocabularies = [n for n in source.names if n in ("vocab.txt", "vocab.txt.gz")] or [
        n for n in source.names if "vocab" in n and n.endswith((".txt", ".txt.gz"))
    ]
    if len(softmaxes) > 1 or (softmaxes and len(vocabularies) > 1):
        raise FormatError(
            f"{source.path} has several softmax or vocabulary files "
            f"({', '.join(softmaxes + vocabularies)}); choose the files with options=, weights=, "
            "softmax= and vocabulary="
        )
    softmax = _at(source, softmaxes[0]) if softmaxes else None
    return _read(
        _at(source, options[0]),
        _at(source, weights[0]),
        softmax,
        _at(source, vocabularies[0]) if softmax and vocabularies else None,
        f"bilm-tf HDF5 ({source.kind})",
        str(source.path),
    )


def read_files(
    options: str | Path,
    weights: str | Path,
    softmax: str | Path | None = None,
    vocabulary: str | Path | None = None,
) -> Checkpoint:
    """Read a model from separate files.

    Args:
        options: The options JSON.
        weights: The HDF5 weights.
        softmax: The HDF5 weights of the softmax, if there are any.
        vocabulary: The words of the softmax, one per line; required with ``softmax``.
    """

    def file(path: str | Path | None, what: str) -> _File | None:
        if path is None:
            return None
        path = require_file(path, what)
        return _File(str(path), None, str(path))

    options_file, weights_file = file(options, "options file"), file(weights, "weights file")
    assert options_file is not None
    assert weights_file is not None
    return _read(
        options_file,
        weights_file,
        file(softmax, "softmax file"),
        file(vocabulary, "vocabulary file"),
        "bilm-tf HDF5 (files)",
        str(weights),
    )


def write(checkpoint: Checkpoint, folder: Path, overwrite: bool = False) -> None:
    """Write options.json and weights.hdf5; softmax.hdf5 and vocab.txt if the model has them.

    Args:
        checkpoint: The model.
        folder: Folder to create.
        overwrite: Replace an existing model folder.
    """
    encoder, context = checkpoint.config.token_encoder, checkpoint.config.context
    name = checkpoint.source or "this model"
    if encoder.alphabet != "utf8" or encoder.word_dim:
        raise UnsupportedModelError(
            f"{name} reads code points or whole words, which the bilm-tf format cannot store; "
            "save it in the native format"
        )
    if not context.carries_state:
        raise UnsupportedModelError(
            f"{name} is a {context.label}, but the bilm-tf format stores LSTMs only; save it in "
            "the native format"
        )
    if checkpoint.config.softmax_cutoffs:
        raise UnsupportedModelError(
            f"{name} has an adaptive softmax, which the bilm-tf format cannot store; save it in "
            "the native format"
        )
    if context.forget_bias != 1:
        raise UnsupportedModelError(
            f"{name} has a forget bias of {context.forget_bias}, but the bilm-tf format requires "
            "1; save it in the native format"
        )
    tensors = {k: v.detach().float().cpu() for k, v in checkpoint.tensors.items()}
    with new_folder(folder, overwrite, MODEL_FILES) as new:
        options = json.dumps(write_options(checkpoint.config), indent=2)
        (new / "options.json").write_text(options + "\n", encoding="utf-8")
        _write_hdf5(new / "weights.hdf5", write_all(weights_table(checkpoint.config), tensors))
        if checkpoint.config.vocabulary_size:
            _write_hdf5(new / "softmax.hdf5", write_all(softmax_table(checkpoint.config), tensors))
        if checkpoint.vocabulary is not None:
            lines = "".join(word + "\n" for word in checkpoint.vocabulary)
            (new / "vocab.txt").write_text(lines, encoding="utf-8")


def _at(source: Source, name: str) -> _File:
    return _File(f"{source.path}/{name}", source, name)


def _is_hdf5(name: str) -> bool:
    return name.endswith((".hdf5", ".h5"))


def _options_names(source: Source) -> list[str]:
    exact = [name for name in source.names if name == "options.json"]
    return exact or [name for name in source.names if name.endswith("options.json")]


def _read(
    options_file: _File,
    weights_file: _File,
    softmax_file: _File | None,
    vocabulary_file: _File | None,
    format_name: str,
    source: str,
) -> Checkpoint:
    vocabulary = None if vocabulary_file is None else _read_vocabulary(vocabulary_file)
    options = parse_json(options_file.text(), options_file.label)
    with _hdf5(weights_file) as file:
        config = read_options(options, options_file.label, bidirectional="rnn" not in file)
        tensors = _read_tensors(file, weights_table(config), options_file.label, weights_file.label)
    if softmax_file is not None:
        with _hdf5(softmax_file) as file:
            config = _with_softmax(config, file, softmax_file, vocabulary, vocabulary_file)
            tensors |= _read_tensors(
                file, softmax_table(config), options_file.label, softmax_file.label
            )
    return Checkpoint(config, tensors, vocabulary, format=format_name, source=source)


def _read_tensors(
    file: Any, table: list[Entry], options_label: str, label: str
) -> dict[str, Tensor]:
    def load(name: str) -> Tensor | None:
        if name not in file:  # bilm-tf drops a level from the names of one-layer models
            name = name.replace("/MultiRNNCell/Cell0", "")
        if name not in file:
            return None
        if not isinstance(file[name], h5py.Dataset):
            raise FormatError(f"{label}: {name} must be a dataset, but it is a group")
        try:
            return torch.from_numpy(np.asarray(file[name][()], np.float32))
        except (OSError, TypeError, ValueError) as error:
            raise FormatError(
                f"{label}: cannot read {name} ({error}); download it again"
            ) from error

    return read_all(table, load, options_label, label)


def _with_softmax(
    config: ModelConfig,
    file: Any,
    softmax_file: _File,
    vocabulary: list[str] | None,
    vocabulary_file: _File | None,
) -> ModelConfig:
    """Return the config with the size of the softmax, which only its own file contains."""
    if "softmax/b" not in file:
        raise FormatError(
            f"{softmax_file.label} has no dataset softmax/b, so it is not a softmax file"
        )
    n = len(file["softmax/b"])
    if vocabulary is None:
        raise FormatError(
            f"{softmax_file.label} has a softmax of {n} words but no vocabulary file; put "
            "vocab.txt next to it or pass vocabulary="
        )
    if len(vocabulary) != n:
        assert vocabulary_file is not None
        raise ShapeError(
            f"{softmax_file.label} has a softmax of {n} words but {vocabulary_file.label} has "
            f"{len(vocabulary)}; use the two files of the same model"
        )
    return replace(config, vocabulary_size=n)


def _read_vocabulary(file: _File) -> list[str]:
    lines = file.text().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    words = [line.strip() for line in lines]
    return [word for word in words if word != "!!!MAXTERMID"]  # bilm-tf skips it too


@contextlib.contextmanager
def _hdf5(file: _File) -> Iterator[Any]:
    """Open an HDF5 file for reading."""
    with file.open() as handle:
        try:
            opened = h5py.File(handle, "r")
        except OSError as error:
            raise FormatError(
                f"{file.label} is not a complete HDF5 file ({error}); download it again"
            ) from error
        with opened:
            yield opened


def _write_hdf5(path: Path, tensors: dict[str, Tensor]) -> None:
    h5py.File(path, "w").close()
    # HDF5 adds about 400 bytes per dataset and 1,100 per group
    reserve_space(path, sum(t.nbytes for t in tensors.values()) + 4096 * len(tensors))
    with h5py.File(path, "r+") as file:  # closing it releases the space that was not needed
        for name, tensor in tensors.items():
            file.create_dataset(name, data=tensor.contiguous().numpy())
