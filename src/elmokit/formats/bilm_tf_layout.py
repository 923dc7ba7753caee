"""The layout of the published format: keys of options.json, names and shapes in the HDF5 files.

docs/formats.md describes the names and the arithmetic.
"""

from __future__ import annotations

from typing import Any

import torch

from elmokit.config import (
    N_BYTE_CHARACTERS,
    ContextConfig,
    ModelConfig,
    TokenEncoderConfig,
)
from elmokit.errors import ConfigError, FormatError, ShapeError, UnsupportedModelError
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.formats.tables import Entry, renamed, transposed, with_padding_row

_OWN_SETTINGS = ("tokenizer", "mix")


def read_options(options: dict[str, Any], label: str, bidirectional: bool) -> ModelConfig:
    """Convert options.json to a config; keys that only training needs are ignored."""
    if "char_cnn" not in options:
        raise UnsupportedModelError(
            f"{label} has no char_cnn; ElmoKit reads models of characters, not of whole words"
        )
    try:
        cnn, lstm = options["char_cnn"], options["lstm"]
        n_characters = int(cnn.get("n_characters", N_BYTE_CHARACTERS))
        if n_characters not in (N_BYTE_CHARACTERS, N_BYTE_CHARACTERS + 1):
            raise ShapeError(
                f"{label} has char_cnn.n_characters {n_characters}; a model of UTF-8 bytes has "
                f"{N_BYTE_CHARACTERS} (training) or {N_BYTE_CHARACTERS + 1} (prediction)"
            )
        return ModelConfig(
            **_own_settings(options, label, int(lstm.get("n_layers", 1))),
            token_encoder=TokenEncoderConfig(
                filters=tuple((int(width), int(count)) for width, count in cnn["filters"]),
                n_highway=int(cnn.get("n_highway") or 0),
                character_dim=int(cnn["embedding"]["dim"]),
                max_characters=int(cnn.get("max_characters_per_token", 50)),
                activation=cnn.get("activation", "relu"),
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


def write_options(config: ModelConfig) -> dict[str, Any]:
    """The inverse of :func:`read_options`."""
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
    options: dict[str, Any] = {
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
    own = {key: config.to_dict()[key] for key in _OWN_SETTINGS}
    if any(getattr(config, key) != getattr(ModelConfig(), key) for key in _OWN_SETTINGS):
        options["elmokit"] = own  # other readers ignore unknown keys
    return options


def _own_settings(options: dict[str, Any], label: str, n_layers: int) -> dict[str, Any]:
    """Return the settings that only ElmoKit has, from its own key in options.json."""
    own = options.get("elmokit", {})
    if not isinstance(own, dict):
        raise FormatError(f"{label}: elmokit must be an object, not {own!r}")
    own = {key: value for key, value in own.items() if key in _OWN_SETTINGS}
    values = ModelConfig.from_dict(own | {"context": {"n_layers": n_layers}})
    return {key: getattr(values, key) for key in _OWN_SETTINGS}


def weights_table(config: ModelConfig) -> list[Entry]:
    """Return the entries of a weights file."""
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
        native, given = f"{cnn}convolutions.{i}.", f"char_cnn.filters[{i}] = [{width}, {count}]"
        table += [
            _convolution(
                f"CNN/W_cnn_{i}",
                native + "weight",
                (1, width, encoder.character_dim, count),
                given,
            ),
            renamed(f"CNN/b_cnn_{i}", native + "bias", (count,), given),
        ]
    for k in range(encoder.n_highway):
        for foreign, native in (("carry", "gate"), ("transform", "transform")):
            where, given = f"{cnn}highways.{k}.{native}.", f"{f} filters in char_cnn.filters"
            table += [
                transposed(f"CNN_high_{k}/W_{foreign}", where + "weight", (f, f), given),
                renamed(f"CNN_high_{k}/b_{foreign}", where + "bias", (f,), given),
            ]
    if f != p:
        where = cnn + "projection."
        given = f"{f} filters in char_cnn.filters and lstm.projection_dim = {p}"
        table += [
            transposed("CNN_proj/W_proj", where + "weight", (f, p), given),
            renamed("CNN_proj/b_proj", where + "bias", (p,), given),
        ]
    given = f"lstm.dim = {h} and lstm.projection_dim = {p}"
    for d, direction in enumerate(("forward", "backward")[: context.n_directions]):
        for layer in range(context.n_layers):
            native = f"{direction}_layers.{layer}."
            if context.bidirectional:
                cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel, bias, projection = cell + "W_0", cell + "B", cell + "W_P_0"
            else:  # forward-only models keep TensorFlow's names
                cell = f"rnn/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel, bias = cell + "kernel", cell + "bias"
                projection = cell + "projection/kernel"
            table += [
                _kernel(kernel, native, p, (2 * p, 4 * h), given),
                renamed(bias, native + "bias", (4 * h,), given),
            ]
            if context.has_projection:
                table.append(transposed(projection, native + "projection", (h, p), given))
    return table


def softmax_table(config: ModelConfig) -> list[Entry]:
    """Return the entries of a softmax file."""
    v, p = config.vocabulary_size, config.context.projection_dim
    given = f"lstm.projection_dim = {p}"
    return [
        renamed("softmax/W", SOFTMAX + "weight", (v, p), given),
        renamed("softmax/b", SOFTMAX + "bias", (v,), given),
    ]


def _convolution(foreign: str, native: str, shape: tuple[int, ...], given: str) -> Entry:
    """Convert (1, width, characters, filters) of TensorFlow to (filters, characters, width)."""
    return Entry(
        foreign,
        (native,),
        shape,
        given,
        lambda t: (t.squeeze(0).permute(2, 1, 0),),
        lambda t: t.permute(2, 1, 0).unsqueeze(0),
    )


def _kernel(foreign: str, native: str, p: int, shape: tuple[int, ...], given: str) -> Entry:
    """Split the matrix of an LSTM into input weights (first rows) and state weights."""
    return Entry(
        foreign,
        (native + "input_weight", native + "state_weight"),
        shape,
        given,
        lambda t: (t[:p].T, t[p:].T),
        lambda x, h: torch.cat([x.T, h.T]),
    )
