"""The format of ELMoForManyLangs: config.json, an architecture JSON, dictionaries, state dicts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

import torch
from torch import Tensor

from elmokit.config import PUBLISHED_FILTERS, ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.errors import ConfigError, FormatError, UnsupportedModelError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.source import Source
from elmokit.formats.tables import Entry, read_all, renamed, with_padding_row

LOOKS_FOR = "config.json, token_embedder.pkl and encoder.pkl (ELMoForManyLangs)"
"""The files that identify this format."""

_RELEASED = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [list(pair) for pair in PUBLISHED_FILTERS],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}
"""The architecture of every released model; the released archives do not contain it."""


def matches(source: Source) -> bool:
    """Return whether a folder or archive has this format."""
    return {"config.json", "token_embedder.pkl", "encoder.pkl"} <= set(source.names)


def read(source: Source) -> Checkpoint:
    """Read a model from a folder or archive."""
    architecture, label = _architecture(source)
    embedder = _section(architecture, "token_embedder", label)
    words = _read_dictionary(source, "word.dic") if _integer(embedder, "word_dim", label) else []
    characters = _read_dictionary(source, "char.dic")
    for needed, names, name in (
        (("<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>"), characters, "char.dic"),
        (("<oov>",) if words else (), words, "word.dic"),
    ):
        if missing := sorted(set(needed) - set(names)):
            raise FormatError(f"{source.path}/{name} has no entry {', '.join(missing)}")
    config = _config(architecture, label, len(characters), len(words))
    tensors: dict[str, Tensor] = {}
    for file, table in (
        ("token_embedder.pkl", _embedder_table(config)),
        ("encoder.pkl", _encoder_table(config)),
    ):
        tensors |= _read_tensors(source, file, table, label)
    return Checkpoint(
        config,
        tensors,
        characters=characters,
        words=words,
        format=f"ELMoForManyLangs ({source.kind})",
        source=str(source.path),
    )


def _architecture(source: Source) -> tuple[dict[str, Any], str]:
    """Return the architecture and its label.

    config_path names the file, but often as a path on the machine of whoever trained the model.
    """
    config_path = str(source.json("config.json").get("config_path", ""))
    base = PurePosixPath(config_path.replace("\\", "/")).name
    names = [n for n in source.all_names if n.endswith(".json") and n != "config.json"]
    named = [n for n in names if PurePosixPath(n).name == base]
    for name in named + names:
        values = source.json(name)
        if {"encoder", "token_embedder"} <= values.keys():
            return values, f"{source.path}/{name}"
    if base == "cnn_50_100_512_4096_sample.json":
        return _RELEASED, f"{base} (built in)"
    raise FormatError(
        f"{source.path}/config.json points to {config_path or 'nothing'}, and no JSON file here "
        f"has encoder and token_embedder; put {base or 'the architecture file'} next to it"
    )


def _config(
    architecture: dict[str, Any], label: str, n_characters: int, n_words: int
) -> ModelConfig:
    embedder = _section(architecture, "token_embedder", label)
    encoder = _section(architecture, "encoder", label)
    for section, key, supported in (
        ("token_embedder", embedder.get("name", "cnn"), "cnn"),
        ("encoder", encoder.get("name", "elmo"), "elmo"),
    ):
        if str(key).lower() != supported:
            raise UnsupportedModelError(
                f"{label} has the {section} {key!r}; ElmoKit reads {supported!r} only, which every "
                "released model has"
            )
    try:
        filters = tuple((int(width), int(count)) for width, count in embedder["filters"])
        return ModelConfig(
            token_encoder=TokenEncoderConfig(
                filters=filters,
                n_highway=_integer(embedder, "n_highway", label),
                character_dim=_integer(embedder, "char_dim", label),
                n_characters=n_characters,
                max_characters=_integer(embedder, "max_characters_per_token", label),
                activation=embedder.get("activation", "relu"),
                alphabet="codepoints",
                word_dim=_integer(embedder, "word_dim", label),
                n_words=n_words,
            ),
            context=ContextConfig(
                n_layers=_integer(encoder, "n_layers", label),
                cell_dim=_integer(encoder, "dim", label),
                projection_dim=_integer(encoder, "projection_dim", label),
                cell_clip=encoder.get("cell_clip") or None,
                proj_clip=encoder.get("proj_clip") or None,
                forget_bias=0.0,  # already in the stored bias
            ),
        )
    except (KeyError, TypeError, ConfigError) as error:
        raise FormatError(f"{label} is not a usable architecture: {error}") from error


def _section(architecture: dict[str, Any], key: str, label: str) -> dict[str, Any]:
    section = architecture.get(key)
    if not isinstance(section, dict):
        raise FormatError(f"{label} has no object {key}")
    return section


def _integer(section: dict[str, Any], key: str, label: str) -> int:
    value = section.get(key)
    if not isinstance(value, int):
        raise FormatError(f"{label} must have a whole number as {key}, not {value!r}")
    return value


def _embedder_table(config: ModelConfig) -> list[Entry]:
    """Return the entries of token_embedder.pkl."""
    c, p = config.token_encoder, config.context.projection_dim
    native = "token_encoder."
    table = [
        with_padding_row(
            "char_emb_layer.embedding.weight",
            native + "character_embedding.weight",
            (c.n_characters, c.character_dim),
            f"char.dic with {c.n_characters} entries and char_dim = {c.character_dim}",
        )
    ]
    if c.word_dim:
        table.append(
            with_padding_row(
                "word_emb_layer.embedding.weight",
                native + "word_embedding.weight",
                (c.n_words, c.word_dim),
                f"word.dic with {c.n_words} entries and word_dim = {c.word_dim}",
            )
        )
    for i, (width, count) in enumerate(c.filters):
        given = f"filters[{i}] = [{width}, {count}]"
        name = f"convolutions.{i}."
        shape = (count, c.character_dim, width)
        table += [
            renamed(name + "weight", native + name + "weight", shape, given),
            renamed(name + "bias", native + name + "bias", (count,), given),
        ]
    f, given = c.n_filters, f"{c.n_filters} filters"
    for k in range(c.n_highway):
        name = f"highways._layers.{k}."
        table += [
            _highway(name + "weight", f"{native}highways.{k}.", "weight", (2 * f, f), given),
            _highway(name + "bias", f"{native}highways.{k}.", "bias", (2 * f,), given),
        ]
    given = f"projection_dim = {p}, word_dim = {c.word_dim} and {given}"
    return [
        *table,
        renamed("projection.weight", native + "projection.weight", (p, f + c.word_dim), given),
        renamed("projection.bias", native + "projection.bias", (p,), given),
    ]


def _highway(foreign: str, where: str, kind: str, shape: tuple[int, ...], given: str) -> Entry:
    """Split transform rows and gate rows; the foreign gate keeps x, so its sign is flipped."""
    return Entry(
        foreign,
        (f"{where}transform.{kind}", f"{where}gate.{kind}"),
        shape,
        given,
        lambda t: (t.chunk(2)[0], -t.chunk(2)[1]),
        lambda transform, gate: torch.cat([transform, -gate]),
    )


def _encoder_table(config: ModelConfig) -> list[Entry]:
    """Return the entries of encoder.pkl."""
    context = config.context
    h, p = context.cell_dim, context.projection_dim
    given = f"dim = {h} and projection_dim = {p}"
    table = []
    for direction in ("forward", "backward"):
        for layer in range(context.n_layers):
            foreign, native = f"{direction}_layer_{layer}.", f"{direction}_layers.{layer}."
            state = foreign + "state_linearity."
            table += [
                _gates(
                    foreign + "input_linearity.weight", native + "input_weight", (4 * h, p), given
                ),
                _gates(state + "weight", native + "state_weight", (4 * h, p), given),
                _gates(state + "bias", native + "bias", (4 * h,), given),
                renamed(foreign + "state_projection.weight", native + "projection", (p, h), given),
            ]
    return table


def _gates(foreign: str, native: str, shape: tuple[int, ...], given: str) -> Entry:
    """Reorder the gates from i, f, j, o to i, j, f, o; the exchange is its own inverse."""

    def exchange(t: Tensor) -> Tensor:
        i, second, third, o = t.chunk(4)
        return torch.cat([i, third, second, o])

    return Entry(foreign, (native,), shape, given, lambda t: (exchange(t),), exchange)


def _read_tensors(
    source: Source, name: str, table: Iterable[Entry], settings: str
) -> dict[str, Tensor]:
    label = f"{source.path}/{name}"
    try:
        with source.open(name) as file:
            stored = torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError, ValueError) as error:
        reason = str(error).split("\n")[0][:200]
        raise FormatError(
            f"{label} is not a complete PyTorch state dict ({reason}); download it again"
        ) from error
    if not isinstance(stored, dict):
        raise FormatError(f"{label} contains a {type(stored).__name__}; expected a state dict")

    def load(name: str) -> Tensor | None:
        tensor = stored.get(name)
        return tensor.float() if isinstance(tensor, Tensor) else None

    return read_all(table, load, settings, label)


def _read_dictionary(source: Source, name: str) -> list[str]:
    """Return the items of a .dic file in the order of their ids."""
    if name not in source:
        raise FormatError(f"{source.path} has no {name}, which this model requires")
    items: dict[int, str] = {}
    for number, line in enumerate(source.text(name).split("\n"), 1):
        if not line:
            continue
        fields = line.split("\t")
        # ELMoForManyLangs strips an ideographic space when writing, which leaves only the id
        item, position = ("\u3000", fields[0]) if len(fields) == 1 else (fields[0], fields[-1])
        try:
            items[int(position)] = item
        except ValueError:
            raise FormatError(
                f"{source.path}/{name}, line {number}: expected an item, a tab and a number, not "
                f"{json.dumps(line, ensure_ascii=False)}"
            ) from None
    if sorted(items) != list(range(len(items))):
        raise FormatError(f"{source.path}/{name}: the ids must run from 0 without gaps")
    return [items[i] for i in range(len(items))]
