"""The ELMo inside a model of AllenNLP: model.tar.gz, its folder, or weights.th alone.

AllenNLP 0.8 to 2.10 use the same names inside an ELMo. What precedes them depends on the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.config import MixConfig, ModelConfig
from elmokit.errors import (
    ConfigError,
    FormatError,
    InputError,
    ShapeError,
    UnsupportedModelError,
    shortened,
    shown,
)
from elmokit.formats.bilm_tf_layout import read_options
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.places import given_files, sources
from elmokit.formats.source import JSON_BYTES, Source, open_file
from elmokit.formats.state_dicts import StateDict
from elmokit.formats.tables import Entry, read_all, renamed
from elmokit.formats.torch_layout import highways_table, lstms_table

LOOKS_FOR = "weights.th or best.th (a model of AllenNLP)"
"""The files that identify this format."""
_WEIGHTS = ("weights.th", "best.th")  # in an archive, and in the folder of a training
_EMBEDDER, _LSTMS = "_token_embedder.", "_elmo_lstm."
_MARK = _EMBEDDER + "_char_embedding_weights"
_OPTIONS = re.compile(r"(fta/.*\.)?options_files?(\.\w+)?|[^/]*options\.json")
_ASSUMED = "clips of 3, relu and 50 characters assumed"  # as in every published model
_MOST_OPTIONS = 16
_MOST_NAMED = 6


@dataclass(frozen=True)
class _Part:
    """An ELMo of a model, with one of its mixes.

    Args:
        bilm: What precedes the names of the biLM.
        mix: What precedes the names of the mix; None for a biLM without one.
    """

    bilm: str
    mix: str | None

    @property
    def name(self) -> str:
        return (self.bilm if self.mix is None else self.mix).rstrip(".")


def matches(source: Source) -> bool:
    """Return whether a folder or archive has this format."""
    return any(name in source.names for name in _WEIGHTS)


def read(source: Source, part: str | None = None) -> Checkpoint:
    """Read the ELMo of a model, with the layer weights and γ that were trained.

    Args:
        source: The folder or archive.
        part: Which ELMo or mix, if there are several.
    """
    return _read(source, _archived_options(source), part)


def read_files(options: str | Path, weights: str | Path, part: str | None = None) -> Checkpoint:
    """Read the ELMo of a model whose options file is given.

    Args:
        options: The options JSON of the ELMo.
        weights: weights.th, or the archive.
        part: Which ELMo or mix, if there are several.
    """
    given = given_files(options=options, weights=weights)
    path, alone = given.path, Source(given.path, {"weights.th": given.path}, "files")
    with open_file(path) as file:
        is_pickle = file.read(1) == b"\x80"  # as torch.save wrote before version 1.6
    found = [] if is_pickle else [source for source in sources(path) if matches(source)]
    name = next(name for name in given.names if name.startswith("options"))
    return _read((found or [alone])[0], (given.json(name), given.label(name)), part)


def _archived_options(source: Source) -> tuple[dict[str, Any], str] | None:
    """Return the options file of the ELMo and its label, if the archive contains it."""
    names = [name for name in source.all_names if _OPTIONS.fullmatch(name)][:_MOST_OPTIONS]
    found = [(source.json(name), source.label(name)) for name in names]
    found = [(values, label) for values, label in found if {"char_cnn", "lstm"} <= values.keys()]
    if any(values != found[0][0] for values, _ in found):
        raise FormatError(
            f"{source.path} has several options files that differ "
            f"({shortened(', '.join(label for _, label in found), 200)}); choose one with options= "
            "and pass the archive as weights="
        )
    return found[0] if found else None


def _read(
    source: Source, options: tuple[dict[str, Any], str] | None, part: str | None
) -> Checkpoint:
    weights = StateDict(source, next(name for name in _WEIGHTS if name in source.names))
    chosen = _chosen(weights, part)
    notes = []
    if options is None:
        config, label = _inferred(weights, chosen.bilm), f"the first layers in {weights.label}"
        notes.append(f"no options file: {_ASSUMED}")
    else:
        config, label = read_options(*options, bidirectional=True), options[1]
    if chosen.mix is not None:
        config = _with_mix(config, weights, chosen.mix)
        text = source.text("config.json", JSON_BYTES) if "config.json" in source else ""
        if re.search(r'"do_layer_norm"\s*:\s*true', text):
            notes.append("mix trained with layer normalisation")
    return Checkpoint(
        config,
        read_all(bilm_table(config, chosen.bilm), weights.get, label, weights.label),
        format=f"AllenNLP ({'; '.join([source.kind, *notes])})",
        source=str(source.path),
    )


def _chosen(weights: StateDict, part: str | None) -> _Part:
    """Return the ELMo and the mix to read: the only ones, or those that ``part`` names."""
    parts = list(_parts(weights.names))
    if not parts:
        what = "has no ELMo in it"
        if any("_contextualizer." in name for name in weights.names):
            what = "is a language model of AllenNLP's own kind, not ELMo"
        raise UnsupportedModelError(
            f"{weights.label} {what}; ElmoKit reads AllenNLP models with a tensor {_MARK}"
        )
    found = parts
    if part is not None:
        found = [p for p in parts if f".{p.name}".endswith(f".{part}")]
        found = found or [p for p in parts if f"{p.name}.".startswith(f"{part}.")]
    if len(found) == 1:
        return found[0]
    names = [shortened(p.name) for p in parts[:_MOST_NAMED]]
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    given = "" if part is None else f", not one that is called {shown(part)}"
    raise InputError(
        f"{weights.label} has the ELMos or mixes {', '.join(names)}{more}{given}; choose one with "
        "part="
    )


def _parts(names: list[str]) -> Iterator[_Part]:
    """Yield every ELMo with each of its mixes."""
    gammas = sorted(name for name in names if name.endswith("gamma"))
    for name in sorted(names):
        if name != _MARK and not name.endswith("." + _MARK):
            continue
        bilm = name.removesuffix(_MARK)
        mix = re.compile(re.escape(bilm.removesuffix(_LSTMS)) + r"scalar_mix_\d+\.gamma")
        mixes = [gamma for gamma in gammas if bilm.endswith(_LSTMS) and mix.fullmatch(gamma)]
        yield from (_Part(bilm, gamma.removesuffix("gamma")) for gamma in mixes)
        if not mixes:
            yield _Part(bilm, None)


def _inferred(weights: StateDict, bilm: str) -> ModelConfig:
    """Return the sizes that the tensors themselves have."""

    def size(name: str, axis: int) -> int:
        stored = weights.get(bilm + name)
        if stored is None or len(stored.shape) <= axis:
            raise ShapeError(
                f"{weights.label} has no tensor {shortened(bilm + name, 200)} of {axis + 1} or "
                "more axes; it is not a complete ELMo"
            )
        return stored.shape[axis]

    def count(pattern: str) -> int:
        """How many layers there are, counted from 0 without a gap."""
        names, n = set(weights.names), 0
        while bilm + pattern.format(n) in names:
            n += 1
        return n

    convolution, lstm = _EMBEDDER + "char_conv_{}.weight", _LSTMS + "forward_layer_{}."
    try:
        return ModelConfig.from_dict(
            {
                "token_encoder": {
                    "filters": [
                        [size(convolution.format(i), 2), size(convolution.format(i), 0)]
                        for i in range(count(convolution))
                    ],
                    "n_highway": count(_EMBEDDER + "_highways._layers.{}.weight"),
                    "character_dim": size(_MARK, 1),
                },
                "context": {
                    "n_layers": count(lstm + "input_linearity.weight"),
                    "cell_dim": size(lstm.format(0) + "input_linearity.weight", 0) // 4,
                    "projection_dim": size(lstm.format(0) + "input_linearity.weight", 1),
                },
            }
        )
    except ConfigError as error:
        raise FormatError(f"{weights.label}: {shortened(str(error), 400)}") from error


def _with_mix(config: ModelConfig, weights: StateDict, mix: str) -> ModelConfig:
    def scalar(name: str) -> float:
        stored = weights.get(mix + name)
        if stored is None or stored.shape != (1,):
            raise FormatError(
                f"{weights.label} must have a tensor {shortened(mix + name, 200)} of shape (1,); "
                "it is not a complete ELMo"
            )
        return float(stored.read())

    n = sum(name.startswith(mix + "scalar_parameters.") for name in weights.names)
    if n != config.n_layers:
        raise ShapeError(
            f"{weights.label}: {shortened(mix)} has {n} layer weights, but the ELMo has "
            f"{config.n_layers} layers; use the files of the same model"
        )
    try:
        scalars = tuple(scalar(f"scalar_parameters.{k}") for k in range(n))
        return replace(config, mix=MixConfig(scalars, scalar("gamma")))
    except ConfigError as error:
        raise FormatError(f"{weights.label}: {shortened(str(error), 400)}") from error


def bilm_table(config: ModelConfig, prefix: str) -> Iterator[Entry]:
    """Yield the entries of a biLM.

    Args:
        config: The sizes.
        prefix: What precedes the names of the biLM.
    """
    encoder, p = config.token_encoder, config.context.projection_dim
    foreign, native, f = prefix + _EMBEDDER, "token_encoder.", encoder.n_filters
    yield renamed(
        prefix + _MARK,
        native + "character_embedding.weight",
        (encoder.n_characters + 1, encoder.character_dim),  # with the row of zeros for padding
        f"char_cnn.embedding.dim = {encoder.character_dim}",
    )
    for i, (width, count) in enumerate(encoder.filters):
        given, shape = f"filters[{i}] = [{width}, {count}]", (count, encoder.character_dim, width)
        name, where = f"{foreign}char_conv_{i}.", f"{native}convolutions.{i}."
        yield renamed(name + "weight", where + "weight", shape, given)
        yield renamed(name + "bias", where + "bias", (count,), given)
    yield from highways_table(config, foreign + "_highways._layers.")
    given = f"{f} filters and projection_dim = {p}"
    yield renamed(foreign + "_projection.weight", native + "projection.weight", (p, f), given)
    yield renamed(foreign + "_projection.bias", native + "projection.bias", (p,), given)
    yield from lstms_table(config, prefix + _LSTMS)
