"""Sentences to numpy arrays of chosen layers, batch by batch or as a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from elmokit.arguments import each, whole_number, wrong
from elmokit.inference.arrays import Array, Arrays
from elmokit.inference.batches import Tokens, token_windows
from elmokit.inference.engine import CARRIED_BATCH_SIZE, BatchResult, Engine
from elmokit.inference.layers import LayerChoice
from elmokit.inference.states import CarriedState, StartState
from elmokit.nn.scalar_mix import ScalarMix

Text = TypeVar("Text")

# size of the vectors of a window of a stream
_CPU_WINDOW_BYTES, _GPU_WINDOW_BYTES = 128 << 20, 1 << 30
# After so many windows, a resumable stream empties its cache of words. With the bundled model on a
# CPU this costs about 1% of the time. A resumed stream encodes the words since then again: at most
# half a minute.
_WINDOWS_PER_CACHE = 128


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
    for window in _stream_windows(engine, sentences, options):
        yield from _in_order(encode_batches(engine, mix, window, options))


def resume_arrays(
    engine: Engine,
    mix: ScalarMix,
    texts: Iterable[Text],
    tokenize: Callable[[Iterable[Text]], Iterator[list[str]]],
    options: VectorOptions,
    done: Sequence[int],
) -> Iterator[Array]:
    """The arrays of all texts but those that are done, with the same bits as if none was done.

    Bits depend on the sentences of a batch, and on the words that went through the CNN together.
    Windows are therefore split from the first text on, whatever is done, and the cache is empty at
    the first window and then at fixed ones. If memory runs out, batches become smaller, which may
    change the last bits.

    Args:
        engine: The model. Its cache is neither used nor changed.
        mix: The weights of the layers.
        texts: All texts, from the first.
        tokenize: Yields the tokens of each text.
        options: How to encode.
        done: The number of tokens of each text that is done.
    """
    engine = engine.fresh()
    sizes = [len(window) for window in _stream_windows(engine, map(range, done), options)]
    # the last of these may be unfinished; the first to read again is one with an empty cache
    n_windows = max(0, len(sizes) - 1) // _WINDOWS_PER_CACHE * _WINDOWS_PER_CACHE
    first = sum(sizes[:n_windows])
    sentences = tokenize(islice(texts, first, None))
    for number, window in enumerate(_stream_windows(engine, sentences, options)):
        if number % _WINDOWS_PER_CACHE == 0:
            engine.cache.clear()
        if first + len(window) <= len(done):
            engine.cache_words(window)
        else:
            arrays = _in_order(encode_batches(engine, mix, window, options))
            yield from islice(arrays, max(0, len(done) - first), None)
        first += len(window)


def _stream_windows(
    engine: Engine, sentences: Iterable[Tokens], options: VectorOptions
) -> Iterator[list[Tokens]]:
    """The windows of a stream, each small enough to keep its vectors in memory."""
    values = math.prod((*options.choice.layer_shape, engine.bilm.config.context.output_dim))
    budget = _CPU_WINDOW_BYTES if engine.device.type == "cpu" else _GPU_WINDOW_BYTES
    max_tokens = budget // (values * options.dtype.itemsize)
    # with carried state, results depend on where a batch starts, so windows hold whole batches
    carried = isinstance(options.start, CarriedState)
    multiple = (options.batch_size or CARRIED_BATCH_SIZE) if carried else 1
    return token_windows(sentences, max_tokens, multiple)


def _in_order(batches: Iterable[list[tuple[int, Array]]]) -> Iterator[Array]:
    """The arrays of all sentences in their order, each as soon as those before it exist."""
    found: dict[int, Array] = {}
    n_given = 0
    for some in batches:
        found.update(some)
        while n_given in found:
            yield found.pop(n_given)
            n_given += 1


def check_batch_size(batch_size: int | None) -> int | None:
    """A checked batch size: None, or a whole number from 1."""
    return None if batch_size is None else whole_number(batch_size, "batch_size", 1)


def check_done(done: Sequence[int]) -> list[int]:
    """Checked numbers of tokens: a list of whole numbers from 0."""
    lengths = each(done, "done", "a list with the number of tokens of each finished text")
    return [whole_number(n, "done", 0) for n in lengths]


def float_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A checked dtype: float32 or float16."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except Exception:  # numpy has many ways to refuse
        found = None
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float16)):
        raise wrong("dtype", "float32 or float16", dtype)
    return found
