"""The layout of the published format: keys of options.json, names and shapes in the HDF5 files.

docs/formats.md describes the names and the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from elmokit.config import N_BYTE_CHARACTERS, ModelConfig
from elmokit.errors import (
    ConfigError,
    FormatError,
    ShapeError,
    UnsupportedModelError,
    shortened,
    shown,
)
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.formats.tables import Entry, renamed, transposed, with_padding_row

_OWN_SETTINGS = ("tokenizer", "script", "mix")


def read_options(options: dict[str, Any], label: str, bidirectional: bool) -> ModelConfig:
    """Convert options.json to a config; keys that only training needs are ignored."""
    if "char_cnn" not in options:
        raise UnsupportedModelError(
            f"{label} has no char_cnn; ElmoKit reads models of characters, not of whole words"
        )
    try:
        cnn, lstm = options["char_cnn"], options["lstm"]
        own = options.get("elmokit", {})
        n_characters = cnn.get("n_characters", N_BYTE_CHARACTERS)
        if n_characters not in (N_BYTE_CHARACTERS, N_BYTE_CHARACTERS + 1):
            raise ShapeError(
                f"{label} has char_cnn.n_characters {shown(n_characters)}; a model of UTF-8 bytes "
                f"has {N_BYTE_CHARACTERS} (training) or {N_BYTE_CHARACTERS + 1} (prediction)"
            )
        values = {
            "token_encoder": {
                "filters": cnn["filters"],
                "n_highway": cnn.get("n_highway") or 0,
                "character_dim": cnn["embedding"]["dim"],
                "max_characters": cnn.get("max_characters_per_token", 50),
                "activation": cnn.get("activation", "relu"),
            },
            "context": {
                "n_layers": lstm.get("n_layers", 1),
                "cell_dim": lstm["dim"],
                "projection_dim": lstm["projection_dim"],
                "cell_clip": lstm.get("cell_clip") or None,
                "proj_clip": lstm.get("proj_clip") or None,
                "skip_connections": lstm.get("use_skip_connections", False),
                "bidirectional": bidirectional,
            },
        } | {key: own[key] for key in _OWN_SETTINGS if key in own}
    except KeyError as error:
        raise FormatError(f"{label} has no {error}; it is not an ELMo options file") from error
    except (TypeError, AttributeError) as error:
        raise FormatError(
            f"{label} has a value of the wrong type in char_cnn, lstm or elmokit, which must be "
            "objects; use the file that came with the weights"
        ) from error
    try:
        return ModelConfig.from_dict(values)
    except ConfigError as error:
        raise FormatError(f"{label}: {shortened(str(error), 400)}") from error


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


def weights_table(config: ModelConfig) -> Iterator[Entry]:
    """Yield the entries of a weights file."""
    encoder, context = config.token_encoder, config.context
    f, p, h = encoder.n_filters, context.projection_dim, context.cell_dim
    cnn = "token_encoder."
    yield with_padding_row(
        "char_embed",
        cnn + "character_embedding.weight",
        (N_BYTE_CHARACTERS, encoder.character_dim),
        f"char_cnn.embedding.dim = {encoder.character_dim}",
    )
    for i, (width, count) in enumerate(encoder.filters):
        native, given = f"{cnn}convolutions.{i}.", f"char_cnn.filters[{i}] = [{width}, {count}]"
        shape = (1, width, encoder.character_dim, count)
        yield _convolution(f"CNN/W_cnn_{i}", native + "weight", shape, given)
        yield renamed(f"CNN/b_cnn_{i}", native + "bias", (count,), given)
    for k in range(encoder.n_highway):
        for foreign, native in (("carry", "gate"), ("transform", "transform")):
            where, given = f"{cnn}highways.{k}.{native}.", f"{f} filters in char_cnn.filters"
            yield transposed(f"CNN_high_{k}/W_{foreign}", where + "weight", (f, f), given)
            yield renamed(f"CNN_high_{k}/b_{foreign}", where + "bias", (f,), given)
    if f != p:
        where = cnn + "projection."
        given = f"{f} filters in char_cnn.filters and lstm.projection_dim = {p}"
        yield transposed("CNN_proj/W_proj", where + "weight", (f, p), given)
        yield renamed("CNN_proj/b_proj", where + "bias", (p,), given)
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
            yield _kernel(kernel, native, p, (2 * p, 4 * h), given)
            yield renamed(bias, native + "bias", (4 * h,), given)
            if context.has_projection:
                yield transposed(projection, native + "projection", (h, p), given)


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
