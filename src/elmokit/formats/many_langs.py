"""The format of ELMoForManyLangs: config.json, an architecture JSON, dictionaries, state dicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from elmokit.config import PUBLISHED_FILTERS, ModelConfig
from elmokit.errors import ConfigError, FormatError, UnsupportedModelError, shortened, shown
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.source import JSON_BYTES, Source
from elmokit.formats.state_dicts import StateDict
from elmokit.formats.tables import Entry, read_all, renamed, with_padding_row
from elmokit.formats.torch_layout import highways_table, lstms_table

LOOKS_FOR = "config.json, token_embedder.pkl and encoder.pkl (ELMoForManyLangs)"
"""The files that identify this format."""
_EMBEDDER = "token_embedder.pkl"
_MOST_FILES = 16  # JSON files to open in search of the architecture
_FEW_ENTRIES = 100_000  # of a dictionary; not compared with the weights, which may be truncated

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
    words = _read_dictionary(source, "word.dic") if embedder.get("word_dim") else []
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
        (_EMBEDDER, _embedder_table(config)),
        ("encoder.pkl", lstms_table(config)),
    ):
        stored = StateDict(source, file)
        tensors |= read_all(table, stored.get, label, stored.label)
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
    base = config_path.replace("\\", "/").rpartition("/")[2]
    names = [n for n in source.all_names if n.endswith(".json") and n != "config.json"]
    named = [n for n in names if n.rpartition("/")[2] == base]
    others = [n for n in names if source.size(n) <= JSON_BYTES]  # a larger one is something else
    for name in (named + others)[:_MOST_FILES]:
        values = source.json(name)
        if {"encoder", "token_embedder"} <= values.keys():
            return values, source.label(name)
    if base == "cnn_50_100_512_4096_sample.json":
        return _RELEASED, f"{base} (built in)"
    raise FormatError(
        f"{source.path}/config.json points to {shortened(config_path) or 'nothing'}, and no JSON "
        "file here has encoder and token_embedder; put "
        f"{shortened(base) or 'the architecture file'} next to it"
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
                f"{label} has the {section} {shown(key)}; ElmoKit reads {supported!r} only, which "
                "every released model has"
            )
    try:
        return ModelConfig.from_dict(
            {
                "token_encoder": {
                    "filters": embedder["filters"],
                    "n_highway": embedder["n_highway"],
                    "character_dim": embedder["char_dim"],
                    "n_characters": n_characters,
                    "max_characters": embedder["max_characters_per_token"],
                    "activation": embedder.get("activation", "relu"),
                    "alphabet": "codepoints",
                    "word_dim": embedder["word_dim"],
                    "n_words": n_words,
                },
                "context": {
                    "n_layers": encoder["n_layers"],
                    "cell_dim": encoder["dim"],
                    "projection_dim": encoder["projection_dim"],
                    "cell_clip": encoder.get("cell_clip") or None,
                    "proj_clip": encoder.get("proj_clip") or None,
                    "forget_bias": 0.0,  # already in the stored bias
                },
            }
        )
    except KeyError as error:
        raise FormatError(f"{label} has no {error}; it is not a usable architecture") from error
    except ConfigError as error:
        raise FormatError(f"{label}: {shortened(str(error), 400)}") from error


def _section(architecture: dict[str, Any], key: str, label: str) -> dict[str, Any]:
    section = architecture.get(key)
    if not isinstance(section, dict):
        raise FormatError(f"{label} has no object {key}")
    return section


def _embedder_table(config: ModelConfig) -> Iterator[Entry]:
    """Yield the entries of token_embedder.pkl."""
    c, p = config.token_encoder, config.context.projection_dim
    native = "token_encoder."
    yield with_padding_row(
        "char_emb_layer.embedding.weight",
        native + "character_embedding.weight",
        (c.n_characters, c.character_dim),
        f"char.dic with {c.n_characters} entries and char_dim = {c.character_dim}",
    )
    if c.word_dim:
        yield with_padding_row(
            "word_emb_layer.embedding.weight",
            native + "word_embedding.weight",
            (c.n_words, c.word_dim),
            f"word.dic with {c.n_words} entries and word_dim = {c.word_dim}",
        )
    for i, (width, count) in enumerate(c.filters):
        given = f"filters[{i}] = [{width}, {count}]"
        name = f"convolutions.{i}."
        shape = (count, c.character_dim, width)
        yield renamed(name + "weight", native + name + "weight", shape, given)
        yield renamed(name + "bias", native + name + "bias", (count,), given)
    f, given = c.n_filters, f"{c.n_filters} filters"
    yield from highways_table(config, "highways._layers.")
    given = f"projection_dim = {p}, word_dim = {c.word_dim} and {given}"
    yield renamed("projection.weight", native + "projection.weight", (p, f + c.word_dim), given)
    yield renamed("projection.bias", native + "projection.bias", (p,), given)


def _read_dictionary(source: Source, name: str) -> list[str]:
    """Return the items of a .dic file in the order of their ids."""
    if name not in source:
        raise FormatError(f"{source.path} has no {name}, which this model requires")
    items: dict[int, str] = {}
    # a row of an embedding has more than one byte
    most = max(source.size(_EMBEDDER), _FEW_ENTRIES)
    for number, line in enumerate(source.lines(name, most), 1):
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
                f"{shown(line)}"
            ) from None
    if sorted(items) != list(range(len(items))):
        raise FormatError(f"{source.path}/{name}: the ids must run from 0 without gaps")
    return [items[i] for i in range(len(items))]
