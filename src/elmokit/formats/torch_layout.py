"""The layout of AllenNLP's modules in PyTorch: highway layers and LSTMs, also those of others.

ELMoForManyLangs took these modules from AllenNLP. They differ from the published HDF5 files: the
highway gate keeps x instead of replacing it, the gates of the LSTMs have another order, and the
bias includes the 1 that TensorFlow adds to the forget gate.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.formats.tables import Entry, renamed


def highways_table(config: ModelConfig, prefix: str) -> Iterator[Entry]:
    """Yield the entries of the highway layers.

    Args:
        config: The sizes.
        prefix: What precedes the number of a layer.
    """
    f, given = config.token_encoder.n_filters, f"{config.token_encoder.n_filters} filters"
    for k in range(config.token_encoder.n_highway):
        where = f"token_encoder.highways.{k}."
        yield _highway(f"{prefix}{k}.weight", where, "weight", (2 * f, f), given)
        yield _highway(f"{prefix}{k}.bias", where, "bias", (2 * f,), given)


def lstms_table(config: ModelConfig, prefix: str = "") -> Iterator[Entry]:
    """Yield the entries of the LSTMs.

    Args:
        config: The sizes. Its forget bias is subtracted from the stored one.
        prefix: What precedes the name of a layer.
    """
    context = config.context
    h, p = context.cell_dim, context.projection_dim
    given = f"dim = {h} and projection_dim = {p}"
    for direction in ("forward", "backward"):
        for layer in range(context.n_layers):
            foreign, native = f"{prefix}{direction}_layer_{layer}.", f"{direction}_layers.{layer}."
            inputs, state = foreign + "input_linearity.", foreign + "state_linearity."
            yield _gates(inputs + "weight", native + "input_weight", (4 * h, p), given)
            yield _gates(state + "weight", native + "state_weight", (4 * h, p), given)
            yield _gates(state + "bias", native + "bias", (4 * h,), given, context.forget_bias)
            yield renamed(foreign + "state_projection.weight", native + "projection", (p, h), given)


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


def _gates(
    foreign: str, native: str, shape: tuple[int, ...], given: str, added: float = 0.0
) -> Entry:
    """Reorder the gates from i, f, j, o to i, j, f, o.

    Args:
        foreign: Name in the foreign file.
        native: Name of the ElmoKit tensor.
        shape: Shape of both.
        given: The settings that determine the shape.
        added: What the foreign forget gate has in addition.
    """

    def read(t: Tensor) -> tuple[Tensor]:
        i, f, j, o = t.chunk(4)
        return (torch.cat([i, j, f - added, o]),)

    def write(t: Tensor) -> Tensor:
        i, j, f, o = t.chunk(4)
        return torch.cat([i, f + added, j, o])

    return Entry(foreign, (native,), shape, given, read, write)
