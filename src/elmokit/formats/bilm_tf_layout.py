"""The published layout itself: keys of options.json, names and shapes in the HDF5 files.

Numerics and names are described in docs/formats.md.
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
from elmokit.formats.tables import Entry, as_it_is, transposed, with_padding_row

_OWN_SETTINGS = ("tokenizer", "mix")


def read_options(options: dict[str, Any], label: str, bidirectional: bool) -> ModelConfig:
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
            **_own_settings(options, label, int(lstm.get("n_layers", 1))),
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
        options["elmokit"] = own  # other readers pass over keys they do not know
    return options


def _own_settings(options: dict[str, Any], label: str, n_layers: int) -> dict[str, Any]:
    """What only ElmoKit has, from the key of its own in options.json."""
    own = options.get("elmokit", {})
    if not isinstance(own, dict):
        raise FormatError(f"{label}: elmokit must be an object, not {own!r}")
    own = {key: value for key, value in own.items() if key in _OWN_SETTINGS}
    values = ModelConfig.from_dict(own | {"context": {"n_layers": n_layers}})
    return {key: getattr(values, key) for key in _OWN_SETTINGS}


def weights_table(config: ModelConfig) -> list[Entry]:
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


def softmax_table(config: ModelConfig) -> list[Entry]:
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
