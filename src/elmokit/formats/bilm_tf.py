"""The published layout: options.json and HDF5 weights, as AllenNLP, bilm-tf and NLPL give them.

Numerics and names are described in docs/formats.md.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import torch
from torch import Tensor

from elmokit.config import (
    N_BYTE_CHARACTERS,
    ContextConfig,
    ModelConfig,
    TokenEncoderConfig,
)
from elmokit.errors import ConfigError, FormatError, ShapeError, UnsupportedModelError
from elmokit.files import new_folder, reserve_space
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint, check_finite
from elmokit.formats.source import Source, parse_json, read_text, require_file
from elmokit.formats.tables import Entry, as_it_is, transposed, with_padding_row, write_all

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
    softmax = _at(source, softmaxes[0]) if len(softmaxes) == 1 else None
    return _read(
        _at(source, options[0]),
        _at(source, weights[0]),
        softmax,
        _at(source, vocabularies[0]) if len(vocabularies) == 1 else None,
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
    if context.forget_bias != 1:
        raise UnsupportedModelError("the bilm-tf layout needs a forget bias of 1; save it natively")
    tensors = {k: v.detach().float().cpu() for k, v in checkpoint.tensors.items()}
    with new_folder(folder, overwrite) as new:
        options = json.dumps(_write_options(checkpoint.config), indent=2)
        (new / "options.json").write_text(options + "\n", encoding="utf-8")
        _write_hdf5(new / "weights.hdf5", write_all(_table(checkpoint.config), tensors))
        if checkpoint.config.vocabulary_size:
            _write_hdf5(new / "softmax.hdf5", write_all(_softmax_table(checkpoint.config), tensors))
        if checkpoint.vocabulary is not None:
            lines = "".join(word + "\n" for word in checkpoint.vocabulary)
            (new / "vocab.txt").write_text(lines, encoding="utf-8")


def _at(source: Source, name: str) -> _File:
    return _File(f"{source.path}/{name}", source, name)


def _is_hdf5(name: str) -> bool:
    return name.endswith((".hdf5", ".h5"))


def _options_names(source: Source) -> list[str]:
    exact = [name for name in source.names if name == "options.json"]
    return exact or [n for n in source.names if n.endswith("options.json") and "/" not in n]


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
        config = _read_options(options, options_file.label, bidirectional="rnn" not in file)
        tensors = _read_tensors(file, _table(config), options_file.label, weights_file.label)
    if softmax_file is not None:
        with _hdf5(softmax_file) as file:
            config = _with_softmax(config, file, softmax_file, vocabulary, vocabulary_file)
            tensors |= _read_tensors(
                file, _softmax_table(config), options_file.label, softmax_file.label
            )
    return Checkpoint(config, tensors, vocabulary, format=format_name, source=source)


def _read_options(options: dict[str, Any], label: str, bidirectional: bool) -> ModelConfig:
    """Settings from options.json; keys only training needs are passed over."""
    if "char_cnn" not in options:
        raise UnsupportedModelError(
            f"{label} has no char_cnn: a model of whole words, not of characters, is not an ELMo"
        )
    try:
        cnn, lstm = options["char_cnn"], options["lstm"]
        n_characters = int(cnn.get("n_characters", N_BYTE_CHARACTERS))
        if n_characters not in (N_BYTE_CHARACTERS, N_BYTE_CHARACTERS + 1):
            raise ShapeError(
                f"{label} has char_cnn.n_characters {n_characters}; a model of UTF-8 bytes has "
                f"{N_BYTE_CHARACTERS} (in training) or {N_BYTE_CHARACTERS + 1} (in prediction)"
            )
        return ModelConfig(
            token_encoder=TokenEncoderConfig(
                filters=tuple((int(width), int(count)) for width, count in cnn["filters"]),
                n_highway=int(cnn.get("n_highway") or 0),
                character_dim=int(cnn["embedding"]["dim"]),
                max_characters=int(cnn.get("max_characters_per_token", 50)),
                activation=str(cnn.get("activation", "relu")),
            ),
            context=ContextConfig(
                n_layers=int(lstm.get("n_layers", 1)),
                cell_dim=int(lstm["dim"]),
                projection_dim=int(lstm["projection_dim"]),
                cell_clip=float(lstm["cell_clip"]) if lstm.get("cell_clip") else None,
                proj_clip=float(lstm["proj_clip"]) if lstm.get("proj_clip") else None,
                skip_connections=bool(lstm.get("use_skip_connections", False)),
                bidirectional=bidirectional,
            ),
        )
    except KeyError as error:
        raise FormatError(f"{label} has no {error}; it is not an ELMo options file") from error
    except (TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise FormatError(f"{label}: {error}") from error
        raise FormatError(f"{label} has a value of the wrong type: {error}") from error


def _write_options(config: ModelConfig) -> dict[str, Any]:
    encoder, context = config.token_encoder, config.context
    lstm: dict[str, Any] = {
        "use_skip_connections": context.skip_connections,
        "projection_dim": context.projection_dim,
        "dim": context.cell_dim,
        "n_layers": context.n_layers,
    }
    for key, value in (("cell_clip", context.cell_clip), ("proj_clip", context.proj_clip)):
        if value is not None:
            lstm[key] = int(value) if value == int(value) else value
    return {
        "lstm": lstm,
        "char_cnn": {
            "activation": encoder.activation,
            "filters": [list(pair) for pair in encoder.filters],
            "n_highway": encoder.n_highway,
            "embedding": {"dim": encoder.character_dim},
            "n_characters": N_BYTE_CHARACTERS + 1,
            "max_characters_per_token": encoder.max_characters,
        },
    }


def _table(config: ModelConfig) -> list[Entry]:
    """Every dataset of a weights file."""
    encoder, context = config.token_encoder, config.context
    f, p, h = encoder.n_filters, context.projection_dim, context.cell_dim
    cnn = "token_encoder."
    table = [
        with_padding_row(
            "char_embed",
            cnn + "character_embedding.weight",
            (N_BYTE_CHARACTERS, encoder.character_dim),
            f"char_cnn.embedding.dim = {encoder.character_dim}",
        )
    ]
    for i, (width, count) in enumerate(encoder.filters):
        native, because = f"{cnn}convolutions.{i}.", f"char_cnn.filters[{i}] = [{width}, {count}]"
        table += [
            _convolution(
                f"CNN/W_cnn_{i}",
                native + "weight",
                (1, width, encoder.character_dim, count),
                because,
            ),
            as_it_is(f"CNN/b_cnn_{i}", native + "bias", (count,), because),
        ]
    for k in range(encoder.n_highway):
        for foreign, native in (("carry", "gate"), ("transform", "transform")):
            where, because = f"{cnn}highways.{k}.{native}.", f"char_cnn.filters with {f} in all"
            table += [
                transposed(f"CNN_high_{k}/W_{foreign}", where + "weight", (f, f), because),
                as_it_is(f"CNN_high_{k}/b_{foreign}", where + "bias", (f,), because),
            ]
    if f != p:
        where = cnn + "projection."
        because = f"char_cnn.filters with {f} in all and lstm.projection_dim = {p}"
        table += [
            transposed("CNN_proj/W_proj", where + "weight", (f, p), because),
            as_it_is("CNN_proj/b_proj", where + "bias", (p,), because),
        ]
    because = f"lstm.dim = {h} and lstm.projection_dim = {p}"
    for d, direction in enumerate(("forward", "backward")[: context.n_directions]):
        for layer in range(context.n_layers):
            native = f"{direction}_layers.{layer}."
            if context.bidirectional:
                cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel, bias, projection = cell + "W_0", cell + "B", cell + "W_P_0"
            else:  # a forward model alone keeps TensorFlow's names
                cell = f"rnn/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel, bias = cell + "kernel", cell + "bias"
                projection = cell + "projection/kernel"
            table += [
                _kernel(kernel, native, p, (2 * p, 4 * h), because),
                as_it_is(bias, native + "bias", (4 * h,), because),
            ]
            if context.has_projection:
                table.append(transposed(projection, native + "projection", (h, p), because))
    return table


def _softmax_table(config: ModelConfig) -> list[Entry]:
    """Both datasets of a softmax file."""
    v, p = config.vocabulary_size, config.context.projection_dim
    because = f"lstm.projection_dim = {p}"
    return [
        as_it_is("softmax/W", SOFTMAX + "weight", (v, p), because),
        as_it_is("softmax/b", SOFTMAX + "bias", (v,), because),
    ]


def _convolution(foreign: str, native: str, shape: tuple[int, ...], because: str) -> Entry:
    """(1, width, characters, filters) of TensorFlow; (filters, characters, width) of PyTorch."""
    return Entry(
        foreign,
        (native,),
        shape,
        because,
        lambda t: (t.squeeze(0).permute(2, 1, 0),),
        lambda t: t.permute(2, 1, 0).unsqueeze(0),
    )


def _kernel(foreign: str, native: str, p: int, shape: tuple[int, ...], because: str) -> Entry:
    """Input and state weights of an LSTM as one matrix, input rows first."""
    return Entry(
        foreign,
        (native + "input_weight", native + "state_weight"),
        shape,
        because,
        lambda t: (t[:p].T, t[p:].T),
        lambda x, h: torch.cat([x.T, h.T]),
    )


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
        entry.check(tuple(file[name].shape), options_label, label)
        try:
            foreign = torch.from_numpy(file[name][()]).float()
        except (OSError, TypeError) as error:
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
    return ModelConfig(config.token_encoder, config.context, config.tokenizer, n, config.mix)


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
