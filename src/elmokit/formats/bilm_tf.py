"""The published format: options.json and HDF5 weights, as AllenNLP, bilm-tf and NLPL give them."""

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
from elmokit.formats.checkpoint import MODEL_FILES, Checkpoint, check_finite
from elmokit.formats.source import Source, parse_json, read_text, require_file
from elmokit.formats.tables import Entry, write_all
from elmokit.io.atomic import new_folder, reserve_space

LOOKS_FOR = "an options JSON and an HDF5 weights file (AllenNLP, bilm-tf, NLPL)"


@dataclass(frozen=True)
class _File:
    """A file by name, wherever it is."""

    label: str
    source: Source | None
    name: str

    def open(self) -> BinaryIO:
        return self.source.open(self.name) if self.source else open(self.name, "rb")

    def text(self) -> str:
        with self.open() as file:
            return read_text(file, self.label)


def matches(source: Source) -> bool:
    """Whether a folder or archive has this layout."""
    return bool(_options_names(source)) and any(_is_hdf5(name) for name in source.names)


def read(source: Source) -> Checkpoint:
    """A model from a folder or archive, with its softmax and vocabulary where they are there."""
    options = _options_names(source)
    if len(options) > 1:
        raise FormatError(
            f"{source.path} has several options files ({', '.join(options)}); say which with "
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
            f"{source.path} should have one HDF5 file with a dataset char_embed, but has "
            f"{len(weights)} ({found}); say which with options= and weights="
        )
    vocabularies = [n for n in source.names if n in ("vocab.txt", "vocab.txt.gz")] or [
        n for n in source.names if "vocab" in n and n.endswith((".txt", ".txt.gz"))
    ]
    if len(softmaxes) > 1 or (softmaxes and len(vocabularies) > 1):
        raise FormatError(
            f"{source.path} has several softmax or vocabulary files "
            f"({', '.join(softmaxes + vocabularies)}); say which with options=, weights=, softmax= "
            "and vocabulary="
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
    """A model from files named one by one."""

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
    """A model as options.json and weights.hdf5, and softmax.hdf5 and vocab.txt if it has them."""
    encoder, context = checkpoint.config.token_encoder, checkpoint.config.context
    if encoder.alphabet != "utf8" or encoder.word_dim:
        raise UnsupportedModelError(
            f"{checkpoint.source or 'this model'} reads code points or whole words, which the "
            "bilm-tf layout cannot hold; save it in the native format"
        )
    if context.kind != "lstm":
        raise UnsupportedModelError(
            f"the bilm-tf layout holds LSTMs alone, and {checkpoint.source or 'this model'} is a "
            f"{context.kind}; save it in the native format"
        )
    if checkpoint.config.softmax_cutoffs:
        raise UnsupportedModelError(
            "the bilm-tf layout has no adaptive softmax; save the model in the native format"
        )
    if context.forget_bias != 1:
        raise UnsupportedModelError("the bilm-tf layout needs a forget bias of 1; save it natively")
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
    tensors: dict[str, Tensor] = {}
    for entry in table:
        name = entry.foreign
        if name not in file:  # bilm-tf drops a level from the names of one-layer models
            name = name.replace("/MultiRNNCell/Cell0", "")
        if name not in file:
            raise ShapeError(
                f"{options_label} and {label} contradict each other: by {entry.because}, there "
                f"should be a dataset {entry.foreign} of shape {entry.shape}, but there is none"
            )
        if not isinstance(file[name], h5py.Dataset):
            raise FormatError(f"{label}: {name} should be a dataset, but it is a group")
        entry.check(tuple(file[name].shape), options_label, label)
        try:
            foreign = torch.from_numpy(np.asarray(file[name][()], np.float32))
        except (OSError, TypeError, ValueError) as error:
            raise FormatError(
                f"{label}: cannot read {name} ({error}); download it again"
            ) from error
        check_finite(foreign, name, label)
        for native, tensor in zip(entry.native, entry.read(foreign), strict=True):
            tensors[native] = tensor.contiguous()
    return tensors


def _with_softmax(
    config: ModelConfig,
    file: Any,
    softmax_file: _File,
    vocabulary: list[str] | None,
    vocabulary_file: _File | None,
) -> ModelConfig:
    """The config with the softmax's size, which only its file tells."""
    if "softmax/b" not in file:
        raise FormatError(f"{softmax_file.label} has no dataset softmax/b; it holds no softmax")
    n = len(file["softmax/b"])
    if vocabulary is None:
        raise FormatError(
            f"{softmax_file.label} has a softmax of {n} words but there is no vocabulary file; "
            "put vocab.txt beside it or give vocabulary="
        )
    if len(vocabulary) != n:
        assert vocabulary_file is not None
        raise ShapeError(
            f"{softmax_file.label} has a softmax of {n} words but {vocabulary_file.label} has "
            f"{len(vocabulary)}; they must belong together"
        )
    return replace(config, vocabulary_size=n)


def _read_vocabulary(file: _File) -> list[str]:
    lines = file.text().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    words = [line.strip() for line in lines]
    return [word for word in words if word != "!!!MAXTERMID"]  # passed over by bilm-tf too


@contextlib.contextmanager
def _hdf5(file: _File) -> Iterator[Any]:
    """An HDF5 file open for reading."""
    with file.open() as handle:
        try:
            opened = h5py.File(handle, "r")
        except OSError as error:
            raise FormatError(
                f"{file.label} is not a whole HDF5 file ({error}); download it again"
            ) from error
        with opened:
            yield opened


def _write_hdf5(path: Path, tensors: dict[str, Tensor]) -> None:
    h5py.File(path, "w").close()
    # some 400 bytes a dataset, 1,100 a group
    reserve_space(path, sum(t.nbytes for t in tensors.values()) + 4096 * len(tensors))
    with h5py.File(path, "r+") as file:  # closing it gives back what was not needed
        for name, tensor in tensors.items():
            file.create_dataset(name, data=tensor.contiguous().numpy())
