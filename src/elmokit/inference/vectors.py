"""Sentences to numpy arrays of chosen layers, batch by batch or as a stream."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from elmokit.errors import InputError
from elmokit.inference.arrays import Array, Arrays
from elmokit.inference.batches import token_windows
from elmokit.inference.engine import CARRIED_BATCH_SIZE, BatchResult, Engine
from elmokit.inference.layers import LayerChoice
from elmokit.inference.states import CarriedState, StartState
from elmokit.nn.scalar_mix import ScalarMix

# size of the vectors that a stream computes before it hands them on
_CPU_WINDOW_BYTES, _GPU_WINDOW_BYTES = 128 << 20, 1 << 30


@dataclass(frozen=True)
class VectorOptions:
    """How to encode sentences."""

    choice: LayerChoice
    """Which layers."""
    dtype: np.dtype[Any]
    """float32 or float16."""
    start: StartState = None
    """What the LSTMs start each sentence from."""
    batch_size: int | None = None
    """Most sentences per batch; None chooses automatically."""
    marks: bool = False
    """Whether to keep the vectors of the sentence marks."""


def encode_batches(
    engine: Engine, mix: ScalarMix, sentences: list[list[str]], options: VectorOptions
) -> Iterator[list[tuple[int, Array]]]:
    """(index, array) pairs of all sentences, batch by batch, in no particular order."""
    choice = options.choice
    kind = torch.float16 if options.dtype == np.float16 else torch.float32

    @torch.inference_mode()
    def to_arrays(batch: BatchResult) -> Arrays:
        chosen = choice.apply(batch.layers, mix).to(kind)
        return Arrays(batch.indices, batch.lengths, chosen, choice.stacked, options.marks)

    results = engine.run(sentences, to_arrays, choice.upto, options.start, options.batch_size)
    before: Arrays | None = None
    for arrays in results:  # a GPU starts the next batch before the previous one is collected
        if before is not None:
            yield before.take()
        before = arrays
        if engine.device.type == "cpu":  # the next batch reuses the memory of this one
            yield before.take()
            before = None
    if before is not None:
        yield before.take()


def stream_arrays(
    engine: Engine, mix: ScalarMix, sentences: Iterable[list[str]], options: VectorOptions
) -> Iterator[Array]:
    """One array per sentence, in order, in bounded memory."""
    values = math.prod((*options.choice.layer_shape, engine.bilm.config.context.output_dim))
    budget = _CPU_WINDOW_BYTES if engine.device.type == "cpu" else _GPU_WINDOW_BYTES
    max_tokens = budget // (values * options.dtype.itemsize)
    # with carried state, results depend on where a batch starts, so windows hold whole batches
    carried = isinstance(options.start, CarriedState)
    multiple = (options.batch_size or CARRIED_BATCH_SIZE) if carried else 1
    for window in token_windows(sentences, max_tokens, multiple):
        found: dict[int, Array] = {}
        for some in encode_batches(engine, mix, window, options):
            found.update(some)
        for i in range(len(window)):
            yield found.pop(i)


def check_batch_size(batch_size: int | None) -> int | None:
    """A checked batch size: None, or a whole number from 1."""
    if batch_size is None:
        return None
    try:
        size = 0 if isinstance(batch_size, bool) else operator.index(batch_size)
    except TypeError:
        size = 0
    if size < 1:
        raise InputError(f"batch_size must be 1 or more, not {batch_size!r}")
    return size


def float_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A checked dtype: float32 or float16."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.dtype(np.float32), np.dtype(np.float16)):
        raise InputError(f"dtype must be float32 or float16, not {dtype!r}")
    assert found is not None
    return found
