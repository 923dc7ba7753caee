"""Foreign weights as tables of names and transforms that work in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from elmokit.errors import ShapeError, shortened
from elmokit.formats.checkpoint import largest


@dataclass(frozen=True)
class Stored:
    """A tensor of a foreign file, not read yet.

    Args:
        shape: Its shape.
        read: Returns it in float32.
    """

    shape: tuple[int, ...]
    read: Callable[[], Tensor]


@dataclass(frozen=True)
class Entry:
    """One foreign tensor and the ElmoKit tensors it contains.

    Args:
        foreign: Name in the foreign file.
        native: Names of the ElmoKit tensors.
        shape: Shape in the foreign file.
        given: The settings that determine the shape, for the error when it differs.
        read: Converts the foreign tensor to ElmoKit's tensors.
        write: The inverse of ``read``.
    """

    foreign: str
    native: tuple[str, ...]
    shape: tuple[int, ...]
    given: str
    read: Callable[[Tensor], tuple[Tensor, ...]]
    write: Callable[..., Tensor]


def renamed(foreign: str, native: str, shape: tuple[int, ...], given: str) -> Entry:
    """Make the entry of a tensor that differs in its name only."""
    return Entry(foreign, (native,), shape, given, lambda t: (t,), lambda t: t)


def transposed(foreign: str, native: str, shape: tuple[int, ...], given: str) -> Entry:
    """Make the entry of a matrix that is stored transposed."""
    return Entry(foreign, (native,), shape, given, lambda t: (t.T,), lambda t: t.T)


def with_padding_row(foreign: str, native: str, shape: tuple[int, ...], given: str) -> Entry:
    """Make the entry of an embedding that is stored without the zero row for padding."""
    return Entry(
        foreign,
        (native,),
        shape,
        given,
        lambda t: (torch.cat([t.new_zeros(1, t.shape[1]), t]),),
        lambda t: t[1:],
    )


def read_all(
    table: Iterable[Entry],
    find: Callable[[str], Stored | None],
    settings: str,
    weights: str,
) -> dict[str, Tensor]:
    """Read all tensors of a foreign file and check their shapes, before reading each.

    Args:
        table: The tensors to read; the first one that is missing ends the reading.
        find: Returns the foreign tensor of a name, or None if the file lacks it.
        settings: Name of the file with the settings, for errors.
        weights: Name of the file with the weights, for errors.
    """
    tensors: dict[str, Tensor] = {}
    for entry in table:
        foreign = find(entry.foreign)
        problem = f"{settings} and {weights} contradict each other: given {entry.given}, "
        if foreign is None:
            raise ShapeError(
                f"{problem}there must be a tensor {entry.foreign} of shape {entry.shape}, but it "
                "is missing"
            )
        if foreign.shape != entry.shape:
            raise ShapeError(
                f"{problem}{entry.foreign} must have shape {entry.shape}, but it has "
                f"{shortened(str(foreign.shape))}"
            )
        whole = foreign.read()
        largest(whole, entry.foreign, weights)
        for native, tensor in zip(entry.native, entry.read(whole), strict=True):
            tensors[native] = tensor.contiguous()
    return tensors


def write_all(table: Iterable[Entry], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a model's tensors to the foreign file's."""
    return {e.foreign: e.write(*(tensors[name] for name in e.native)) for e in table}
