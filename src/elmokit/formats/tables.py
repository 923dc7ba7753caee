"""Foreign weights as tables of names and transforms that work in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from elmokit.errors import ShapeError


@dataclass(frozen=True)
class Entry:
    """One foreign tensor and the tensors of ElmoKit it holds.

    Args:
        foreign: Its name in the foreign file.
        native: ElmoKit's names of what it holds.
        shape: Its shape in the foreign file.
        because: The settings this shape follows from, for the error when it differs.
        read: The foreign tensor to ElmoKit's.
        write: The inverse.
    """

    foreign: str
    native: tuple[str, ...]
    shape: tuple[int, ...]
    because: str
    read: Callable[[Tensor], tuple[Tensor, ...]]
    write: Callable[..., Tensor]

    def check(self, shape: tuple[int, ...], settings: str, weights: str) -> None:
        """Raise unless the foreign file's tensor has the expected shape."""
        if shape != self.shape:
            raise ShapeError(
                f"{settings} and {weights} contradict each other: by {self.because}, "
                f"{self.foreign} should have the shape {self.shape}, but it has {shape}"
            )


def as_it_is(foreign: str, native: str, shape: tuple[int, ...], because: str) -> Entry:
    """The same tensor under another name."""
    return Entry(foreign, (native,), shape, because, lambda t: (t,), lambda t: t)


def transposed(foreign: str, native: str, shape: tuple[int, ...], because: str) -> Entry:
    """A matrix stored the other way round."""
    return Entry(foreign, (native,), shape, because, lambda t: (t.T,), lambda t: t.T)


def with_padding_row(foreign: str, native: str, shape: tuple[int, ...], because: str) -> Entry:
    """An embedding stored without the row of zeros for padding."""
    return Entry(
        foreign,
        (native,),
        shape,
        because,
        lambda t: (torch.cat([t.new_zeros(1, t.shape[1]), t]),),
        lambda t: t[1:],
    )


def write_all(table: Iterable[Entry], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All foreign tensors of a model."""
    return {e.foreign: e.write(*(tensors[name] for name in e.native)) for e in table}
