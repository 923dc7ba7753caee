"""The layers of a batch as numpy arrays, one per sentence."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.devices import to_device

Array = npt.NDArray[Any]

_COPY_THREADS = min(8, os.cpu_count() or 1)


class Arrays:
    """The vectors of a batch, being copied to numpy.

    A GPU copies real tokens only, in the background: :meth:`take` waits for it.

    Args:
        indices: The index of each sentence (B).
        lengths: The number of tokens of each sentence (B), without marks.
        layers: (K, B, T, D): mark, tokens, mark, padding.
        stacked: Whether the arrays keep the layer axis.
        marks: Whether the arrays keep the vectors of the sentence marks.
    """

    def __init__(
        self,
        indices: list[int],
        lengths: list[int],
        layers: Tensor,
        stacked: bool,
        marks: bool,
    ) -> None:
        self._indices, self._stacked = indices, stacked
        self._first = 0 if marks else 1
        self._lengths = [n + 2 for n in lengths] if marks else lengths
        self._layers = layers if layers.device.type in ("cpu", "cuda") else layers.cpu()
        self._copied = None
        if layers.device.type == "cuda":
            places = np.arange(layers.shape[2]) - self._first
            index = np.flatnonzero((places >= 0) & (places < np.array(self._lengths)[:, None]))
            real = layers.flatten(1, 2).index_select(
                1, to_device(torch.from_numpy(index), layers.device)
            )
            self._layers = real.to("cpu", non_blocking=True)  # (K, tokens, D)
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record(torch.cuda.current_stream(layers.device))

    def take(self) -> list[tuple[int, Array]]:
        """Pairs (index, array), one per sentence.

        The arrays are copies, because a view would keep the whole batch in memory.
        """
        if self._copied is None:
            array = self._layers.numpy() if self._stacked else self._layers[0].numpy()
            first = self._first
            arrays = [
                array[..., row, first : first + n, :].copy() for row, n in enumerate(self._lengths)
            ]
        else:
            self._copied.synchronize()
            array = self._layers.numpy() if self._stacked else self._layers[0].numpy()
            ends = np.cumsum(self._lengths)
            parts = [slice(end - n, end) for n, end in zip(self._lengths, ends, strict=True)]
            share = -(-len(parts) // _COPY_THREADS)
            shares = [parts[i : i + share] for i in range(0, len(parts), share)]
            # allocating memory is the slowest part, and several threads allocate faster
            with ThreadPoolExecutor(_COPY_THREADS) as pool:
                copied = pool.map(lambda some: [array[..., p, :].copy() for p in some], shares)
                arrays = list(itertools.chain.from_iterable(copied))
        return list(zip(self._indices, arrays, strict=True))
