"""Sentences of tokens to layers, batch by batch."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from elmokit.devices import is_out_of_memory
from elmokit.errors import OutOfMemoryError
from elmokit.inference.batches import NumberedSentences, Numbers, Windows, plan_batches
from elmokit.inference.states import CarriedState, StartState
from elmokit.inference.word_cache import WordCache
from elmokit.nn.bilm import BiLM
from elmokit.nn.context import BiLMState
from elmokit.text.characters import Alphabet

CARRIED_BATCH_SIZE = 64
"""Sentences of a batch with carried state, where batches matter; the default of AllenNLP."""

Result = TypeVar("Result")

_CPU_TOKENS, _CPU_SENTENCES = 8192, 256  # twice that for large models, whose products want rows
_LARGE_CELL = 4096
# a window's words are looked up before its first batch, which takes a CPU long while they are new
_CPU_WINDOWS, _GPU_WINDOWS = (1024, 8192), (8192, 65_536)
_GPU_VALUES = 2**27  # of a layer; small models take more tokens at once, which is all they lack
_GPU_TOKENS_A_SENTENCE = 32


@dataclass
class BatchResult:
    """Layers of some sentences."""

    indices: list[int]
    """Which sentences of the call these are (B)."""
    lengths: list[int]
    """Their tokens (B), without the sentence marks."""
    layers: Tensor
    """Layers 0 … upto, (upto + 1, B, T, D): mark, tokens, mark, then zeros. The next batch uses
    their memory again."""


class _Memory:
    """Room for the layers of a batch, used again for the next one.

    Fresh memory costs a CPU more time than copying into it, as the system clears it page by page.
    """

    def __init__(self) -> None:
        self._room: Tensor | None = None

    def of(self, n_values: int, like: Tensor) -> Tensor:
        if self._room is None or len(self._room) < n_values:
            # more than needed the second time, so that it does not have to grow again and again
            size = n_values if self._room is None else n_values * 3 // 2
            self._room = None
            self._room = like.new_empty(size)
        return self._room


class Engine:
    """Runs a biLM over any number of sentences in bounded memory.

    Args:
        bilm: The model.
        alphabet: What turns its words into ids.
        cache_bytes: Most memory for token vectors kept between calls.
    """

    def __init__(self, bilm: BiLM, alphabet: Alphabet, cache_bytes: int) -> None:
        self.bilm = bilm
        self.alphabet = alphabet
        self.cache = WordCache(
            bilm.token_encoder, alphabet, bilm.config.context.projection_dim, cache_bytes
        )
        self._max_tokens: dict[str, int] = {}  # by kind of device, lowered when memory runs out

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.bilm.device

    def run(
        self,
        sentences: Sequence[Sequence[str]],
        then: Callable[[BatchResult], Result],
        upto: int | None = None,
        start: StartState = None,
        batch_size: int | None = None,
    ) -> Iterator[Result]:
        """Something made of the layers of all sentences, batch by batch, in no particular order.

        Args:
            sentences: Tokens without sentence marks; an empty sentence is read as its two marks.
            then: What to make of each batch, while its layers are on the device.
            upto: The last layer needed; None for all.
            start: What the LSTMs start from.
            batch_size: Most sentences of a batch; None to choose.
        """
        self.cache.check_weights()
        if isinstance(start, CarriedState):
            rows = batch_size or CARRIED_BATCH_SIZE
            yield from self._run_carried(sentences, then, upto, start, rows)
            return
        memory, first = _Memory(), 0
        windows = Windows(sentences, self.alphabet.begin, self.alphabet.end, *self._windows())

        def run_batch(window: NumberedSentences, vectors: Tensor, indices: list[int]) -> Result:
            with self._undisturbed():
                batch, _ = self._run_batch(window, vectors, indices, upto, start, memory)
                batch.indices = [first + i for i in indices]
                return then(batch)

        while window := windows.take():
            run = partial(run_batch, window, self._vectors(window))
            for result, share in self._run_window(window.lengths + 2, run, batch_size):
                windows.read_ahead(share)  # a GPU computes meanwhile
                yield result
            first += len(window.lengths)

    def _vectors(self, sentences: NumberedSentences) -> Tensor:
        """Token vectors of all their words by number (1 + W, P)."""
        what = f"the vectors of {len(sentences.words):,} different words do"
        with self._undisturbed(), self._fitting(what, "give fewer sentences at once"):
            return self.cache.vectors(sentences.words)

    def _run_window(
        self,
        lengths: Numbers,
        run_batch: Callable[[list[int]], Result],
        batch_size: int | None,
    ) -> Iterator[tuple[Result, float]]:
        """Results of batches of sentences, marks among their lengths, each with its share of them.

        When memory runs out, less is run at once from then on.
        """
        kind = self.device.type
        most, rows = self._at_once()
        rows = batch_size or rows
        budget = self._max_tokens.setdefault(kind, most)
        todo = deque(plan_batches(range(len(lengths)), lengths, budget, rows))
        while todo:
            indices = todo.popleft()
            try:
                result = run_batch(indices)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                if len(indices) == 1:
                    raise _too_long(int(lengths[indices[0]]) - 2, self.device) from error
            else:
                yield result, len(indices) / len(lengths)
                continue
            if kind == "cuda":
                torch.cuda.empty_cache()
            rows = len(indices) // 2
            self._max_tokens[kind] = rows * int(lengths[indices[0]])
            rest = [*indices, *(i for batch in todo for i in batch)]
            todo = deque(plan_batches(rest, lengths, self._max_tokens[kind], rows))

    def _run_carried(
        self,
        sentences: Sequence[Sequence[str]],
        then: Callable[[BatchResult], Result],
        upto: int | None,
        start: CarriedState,
        rows: int,
    ) -> Iterator[Result]:
        """Batches in the order given; the state of a row passes over its empty sentences."""
        memory = _Memory()
        for first in range(0, len(sentences), rows):
            some = NumberedSentences(self.alphabet.begin, self.alphabet.end)
            some.add(sentences[first : first + rows])
            some.close()
            indices = list(range(len(some.lengths)))
            before = start.rows(len(indices), self.bilm)
            # not in two halves, which would be another result
            what = f"a batch of {len(indices)} sentences does"
            with self._undisturbed(), self._fitting(what, "give a smaller batch_size"):
                vectors = self.cache.vectors(some.words)
                # all layers, as a state with some layers missing could not be carried on
                batch, final = self._run_batch(some, vectors, indices, None, before, memory)
                read = torch.tensor([n > 0 for n in batch.lengths])
                start.keep(final if read.all() else final.where(read, before))
                batch.indices = [first + i for i in indices]
                if upto is not None:
                    batch.layers = batch.layers[: upto + 1]
                result = then(batch)
            yield result

    def _run_batch(
        self,
        sentences: NumberedSentences,
        vectors: Tensor,
        indices: list[int],
        upto: int | None,
        start: BiLMState | None,
        memory: _Memory,
    ) -> tuple[BatchResult, BiLMState]:
        places = sentences.places(indices, vectors.device)
        tokens = vectors.index_select(0, places.view(-1)).view(*places.shape, -1)
        lengths = sentences.lengths[indices]
        if start is not None and len(start) != len(indices):
            start = start.map(lambda t: t.expand(-1, len(indices), -1))
        context = self.bilm.config.context
        n_layers = (context.n_layers if upto is None else upto) + 1
        room = memory.of(n_layers * places.numel() * context.output_dim, tokens)
        layers, final = self.bilm(tokens, torch.from_numpy(lengths + 2), start, upto, room)
        return BatchResult(indices, lengths.tolist(), layers), final

    def _windows(self) -> tuple[int, int]:
        """Sentences of the first window and of the largest."""
        return _CPU_WINDOWS if self.device.type == "cpu" else _GPU_WINDOWS

    def _at_once(self) -> tuple[int, int]:
        """Most padded tokens and sentences of a batch."""
        context = self.bilm.config.context
        if self.device.type == "cpu":
            times = 2 if context.cell_dim >= _LARGE_CELL else 1
            return times * _CPU_TOKENS, times * _CPU_SENTENCES
        tokens = _GPU_VALUES // context.output_dim
        return tokens, max(1, tokens // _GPU_TOKENS_A_SENTENCE)

    @contextlib.contextmanager
    def _fitting(self, what: str, remedy: str) -> Iterator[None]:
        """Say what does not fit in memory, and what to do, if it runs out."""
        try:
            yield
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"{what} not fit in the memory of {self.device}; {remedy}"
            ) from error

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Without gradients, and whatever autocast and device a caller has set.

        Autocast would change the numbers, and stay in the cache; kernels run on the current device.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.autocast(self.device.type, enabled=False))
            if self.device.type == "cuda":
                stack.enter_context(torch.cuda.device(self.device))
            yield


def _too_long(n_tokens: int, device: torch.device) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"a sentence of {n_tokens} tokens does not fit in the memory of {device}; split it, ask "
        "for fewer layers, or use the CPU"
    )
