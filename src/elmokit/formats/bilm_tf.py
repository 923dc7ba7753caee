"""The published format of AllenNLP, bilm-tf and NLPL: options.json and HDF5 weights."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
from torch import Tensor

from elmokit.errors import FormatError, ShapeError, UnsupportedModelError, shortened
from elmokit.formats.bilm_tf_layout import (
    read_options,
    softmax_table,
    weights_table,
    write_options,
)
from elmokit.formats.checkpoint import MODEL_FILES, Checkpoint
from elmokit.formats.hdf5_weights import Hdf5Weights, open_hdf5
from elmokit.formats.places import given_files
from elmokit.formats.source import Source
from elmokit.formats.tables import Entry, Stored, read_all, write_all
from elmokit.io.atomic import new_folder, reserve_space

LOOKS_FOR = "an options JSON and an HDF5 weights file (AllenNLP, bilm-tf, NLPL)"
"""The files that identify this format."""
_MOST_FILES = 16  # HDF5 files to open in search of the weights


@dataclass(frozen=True)
class _Names:
    """Names of a model's files in its source."""

    options: str
    weights: str
    softmax: str | None = None
    vocabulary: str | None = None


def matches(source: Source) -> bool:
    """Return whether a folder or archive has this format."""
    return bool(options_names(source)) and any(_is_hdf5(name) for name in source.names)


def read(source: Source) -> Checkpoint:
    """Read a model from a folder or archive, with its softmax and vocabulary if present."""
    options = options_names(source)
    if len(options) > 1:
        raise FormatError(
            f"{source.path} has several options files ({listed(options)}); choose one with "
            "options= and weights="
        )
    candidates = list(filter(_is_hdf5, source.names))
    weights, softmaxes = [], []
    for name in candidates[:_MOST_FILES]:
        with open_hdf5(source, name) as file:
            if "char_embed" in file:
                weights.append(name)
            elif "softmax" in file:
                softmaxes.append(name)
    if len(weights) != 1 or len(candidates) > _MOST_FILES:
        raise FormatError(
            f"{source.path} must have exactly one HDF5 file with a dataset char_embed, but has "
            f"{len(weights)} ({listed(weights or candidates)}); choose one with options= and "
            "weights="
        )
    vocabularies = vocabulary_names(source)
    if len(softmaxes) > 1 or (softmaxes and len(vocabularies) > 1):
        raise FormatError(
            f"{source.path} has several softmax or vocabulary files "
            f"({listed(softmaxes + vocabularies)}); choose the files with options=, weights=, "
            "softmax= and vocabulary="
        )
    softmax = softmaxes[0] if softmaxes else None
    vocabulary = vocabularies[0] if softmaxes and vocabularies else None
    return _read(source, _Names(options[0], weights[0], softmax, vocabulary))


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
    source = given_files(options=options, weights=weights, softmax=softmax, vocabulary=vocabulary)
    given = {name.removesuffix(".gz"): name for name in source.names}
    return _read(source, _Names(**given))


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


def options_names(source: Source) -> list[str]:
    """Return the names of the options files: options.json, or all that end so."""
    exact = [name for name in source.names if name == "options.json"]
    return exact or [name for name in source.names if name.endswith("options.json")]


def vocabulary_names(source: Source) -> list[str]:
    """Return the names of the word lists: vocab.txt, or all that contain "vocab"."""
    return [n for n in source.names if n in ("vocab.txt", "vocab.txt.gz")] or [
        n for n in source.names if "vocab" in n and n.endswith((".txt", ".txt.gz"))
    ]


def listed(names: list[str]) -> str:
    """Return the first names, for errors."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(shortened, names[:3])) + more


def read_words(source: Source, name: str, n: int, weights: str) -> list[str]:
    """Read the words of a softmax.

    Args:
        source: The folder or archive.
        name: The word list.
        n: Rows of the softmax.
        weights: The file with the softmax, for errors.
    """
    lines = source.lines(name, n + 1)  # and the line that bilm-tf skips
    words = [word for word in map(str.strip, lines) if word != "!!!MAXTERMID"]
    if len(words) != n:
        raise ShapeError(
            f"{weights} has a softmax of {n} words but {source.label(name)} has {len(words)}; use "
            "the two files of the same model"
        )
    return words


def _is_hdf5(name: str) -> bool:
    return name.endswith((".hdf5", ".h5"))


def _read(source: Source, names: _Names) -> Checkpoint:
    options_label = source.label(names.options)
    options = source.json(names.options)
    with open_hdf5(source, names.weights) as file:
        config = read_options(options, options_label, bidirectional="rnn" not in file)
        tensors = _read_tensors(file, weights_table(config), options_label)
    vocabulary = None
    if names.softmax is not None:
        with open_hdf5(source, names.softmax) as file:
            vocabulary = _read_vocabulary(source, names, file)
            config = replace(config, vocabulary_size=len(vocabulary))
            tensors |= _read_tensors(file, softmax_table(config), options_label)
    return Checkpoint(
        config,
        tensors,
        vocabulary,
        format=f"bilm-tf HDF5 ({source.kind})",
        source=str(source.path),
    )


def _read_tensors(
    file: Hdf5Weights, table: Iterable[Entry], options_label: str
) -> dict[str, Tensor]:
    def find(name: str) -> Stored | None:
        # bilm-tf drops a level from the names of one-layer models
        return file.get(name) or file.get(name.replace("/MultiRNNCell/Cell0", ""))

    return read_all(table, find, options_label, file.label)


def _read_vocabulary(source: Source, names: _Names, softmax: Hdf5Weights) -> list[str]:
    """Return the words of the softmax; their number is known from its own file only."""
    bias = softmax.get("softmax/b")
    if bias is None or len(bias.shape) != 1:
        raise FormatError(
            f"{softmax.label} has no dataset softmax/b of one dimension, so it is not a softmax "
            "file"
        )
    (n,) = bias.shape
    if names.vocabulary is None:
        raise FormatError(
            f"{softmax.label} has a softmax of {n} words but no vocabulary file; put vocab.txt "
            "next to it or pass vocabulary="
        )
    return read_words(source, names.vocabulary, n, softmax.label)


def _write_hdf5(path: Path, tensors: dict[str, Tensor]) -> None:
    h5py.File(path, "w").close()
    # HDF5 adds about 400 bytes per dataset and 1,100 per group
    reserve_space(path, sum(t.nbytes for t in tensors.values()) + 4096 * len(tensors))
    with h5py.File(path, "r+") as file:  # closing it releases the space that was not needed
        for name, tensor in tensors.items():
            file.create_dataset(name, data=tensor.contiguous().numpy())
