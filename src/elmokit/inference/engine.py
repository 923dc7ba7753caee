"""Run a biLM over sentences, batch by batch."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from elmokit.devices import check_memory, is_out_of_memory
from elmokit.errors import OutOfMemoryError
from elmokit.inference.batches import NumberedSentences, Numbers, Windows, plan_batches
from elmokit.inference.states import CarriedState, StartState
from elmokit.inference.word_cache import WordCache
from elmokit.nn.bilm import BiLM
from elmokit.nn.context import BiLMState
from elmokit.text.characters import Alphabet

CARRIED_BATCH_SIZE = 64
"""Sentences per batch with carried state, where batches affect results; AllenNLP's default."""

Result = TypeVar("Result")

_CPU_TOKENS, _CPU_SENTENCES = 8192, 256  # doubled for large models, whose products need more rows
_LARGE_CELL = 4096
# Sentences of the first and of the largest window. All words of a window are encoded before its
# first batch, which is slow on a CPU as long as most words are new.
_CPU_WINDOWS, _GPU_WINDOWS = (1024, 8192), (8192, 65_536)
_GPU_VALUES = 2**27  # values per layer of a batch; smaller models need more tokens to fill a GPU
_GPU_TOKENS_PER_SENTENCE = 32


@dataclass
class BatchResult:
    """The layers of one batch."""

    indices: list[int]
    """The index of each sentence (B) among those of the call."""
    lengths: list[int]
    """The number of tokens of each sentence (B), without marks."""
    layers: Tensor
    """Layers 0 … upto, (upto + 1, B, T, D): mark, tokens, mark, then zeros. The next batch
    overwrites them."""


class _Buffer:
    """Memory for the layers of a batch, reused for the next one.

    On a CPU, new memory takes longer to get than to fill: the system clears it page by page.
    """

    def __init__(self) -> None:
        self._values: Tensor | None = None

    def get(self, n_values: int, like: Tensor) -> Tensor:
        """At least n_values values, of the type and on the device of another tensor."""
        if self._values is None or len(self._values) < n_values:
            # if it must grow, grow beyond the need, so it rarely grows again
            size = n_values if self._values is None else n_values * 3 // 2
            self._values = None  # free the old values first
            self._values = like.new_empty(size)
        return self._values


class Engine:
    """Runs a biLM over any number of sentences in bounded memory.

    Args:
        bilm: The model.
        alphabet: Turns words into character ids.
        cache_bytes: Memory limit for token vectors kept between calls.
    """

    def __init__(self, bilm: BiLM, alphabet: Alphabet, cache_bytes: int) -> None:
        self.bilm = bilm
        self.alphabet = alphabet
        self._cache_bytes = cache_bytes
        self.cache = WordCache(
            bilm.token_encoder, alphabet, bilm.config.context.projection_dim, cache_bytes
        )
        self._max_tokens: dict[str, int] = {}  # by device type; lowered when memory runs out

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.bilm.device

    def fresh(self) -> Engine:
        """The same model with an empty cache, so nothing that was run before has an influence."""
        return Engine(self.bilm, self.alphabet, self._cache_bytes)

    def run(
        self,
        sentences: Sequence[Sequence[str]],
        then: Callable[[BatchResult], Result],
        upto: int | None = None,
        start: StartState = None,
        batch_size: int | None = None,
    ) -> Iterator[Result]:
        """Compute the layers of all sentences and pass each batch to a function.

        Args:
            sentences: Tokens without sentence marks. An empty sentence is read as its two marks.
            then: Called with each batch, while its layers are on the device.
            upto: The last layer needed; None for all.
            start: The initial state.
            batch_size: The largest number of sentences in a batch. None chooses automatically.

        Yields:
            What ``then`` returns for each batch. Batches come in any order, except with carried
            state, which keeps the order of the sentences.
        """
        self.cache.check_weights()
        if isinstance(start, CarriedState):
            rows = batch_size or CARRIED_BATCH_SIZE
            yield from self._run_carried(sentences, then, upto, start, rows)
            return
        buffer, first = _Buffer(), 0
        windows = self._windows(sentences)

        def run_batch(window: NumberedSentences, vectors: Tensor, indices: list[int]) -> Result:
            with self._isolated():
                batch, _ = self._run_batch(window, vectors, indices, upto, start, buffer)
                batch.indices = [first + i for i in indices]
                return then(batch)

        while window := windows.take():
            run = partial(run_batch, window, self._vectors(window))
            for result, share in self._run_window(window.lengths + 2, run, batch_size):
                windows.read_ahead(share)  # a GPU computes meanwhile
                yield result
            first += len(window.lengths)

    def cache_words(self, sentences: Sequence[Sequence[str]]) -> None:
        """Leave the cache as :meth:`run` would, without computing the layers."""
        self.cache.check_weights()
        windows = self._windows(sentences)
        while window := windows.take():
            self._vectors(window)

    def _vectors(self, sentences: NumberedSentences) -> Tensor:
        """The token vectors (1 + W, P) of all distinct words, by number."""
        what = f"the vectors of {len(sentences.words):,} different words do"
        with self._isolated(), self._explain_out_of_memory(what, "pass fewer sentences at once"):
            return self.cache.vectors(sentences.words)

    def _run_window(
        self,
        lengths: Numbers,
        run_batch: Callable[[list[int]], Result],
        batch_size: int | None,
    ) -> Iterator[tuple[Result, float]]:
        """Run the batches of one window.

        When memory runs out, this and later batches are made smaller.

        Args:
            lengths: The number of tokens of each sentence, marks included.
            run_batch: Called with the indices of each batch.
            batch_size: The largest number of sentences in a batch. None chooses automatically.

        Yields:
            The result of each batch, and its share of all sentences of the window.
        """
        kind = self.device.type
        most, rows = self._batch_limits()
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
        """Run batches in the order given. Empty sentences do not change the state of their row."""
        buffer = _Buffer()
        for first in range(0, len(sentences), rows):
            some = NumberedSentences(self.alphabet.begin, self.alphabet.end)
            some.add(sentences[first : first + rows])
            some.close()
            indices = list(range(len(some.lengths)))
            before = start.rows(len(indices), self.bilm)
            # a batch cannot be halved when memory runs out: that would change the results
            what = f"a batch of {len(indices)} sentences does"
            with self._isolated(), self._explain_out_of_memory(what, "pass a smaller batch_size="):
                vectors = self.cache.vectors(some.words)
                # all layers, because the next batch needs the state of each
                batch, final = self._run_batch(some, vectors, indices, None, before, buffer)
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
        buffer: _Buffer,
    ) -> tuple[BatchResult, BiLMState]:
        places = sentences.places(indices, vectors.device)
        tokens = vectors.index_select(0, places.view(-1)).view(*places.shape, -1)
        lengths = sentences.lengths[indices]
        if start is not None and len(start) != len(indices):
            start = start.map(lambda t: t.expand(-1, len(indices), -1))
        context = self.bilm.config.context
        n_layers = self.bilm.config.n_layers if upto is None else upto + 1
        width = 4 * n_layers * context.output_dim  # layers, inputs and outputs of both directions
        width += 0 if context.carries_state else 2 * context.cell_dim
        what = f"sentences of {int(lengths.max())} tokens"
        check_memory(4 * places.numel() * width, self.device, what, "pass shorter ones")
        memory = buffer.get(n_layers * places.numel() * context.output_dim, tokens)
        layers, final = self.bilm(tokens, torch.from_numpy(lengths + 2), start, upto, memory)
        return BatchResult(indices, lengths.tolist(), layers), final

    def _windows(self, sentences: Sequence[Sequence[str]]) -> Windows:
        sizes = _CPU_WINDOWS if self.device.type == "cpu" else _GPU_WINDOWS
        return Windows(sentences, self.alphabet.begin, self.alphabet.end, *sizes)

    def _batch_limits(self) -> tuple[int, int]:
        """The largest numbers of padded tokens and of sentences in a batch."""
        context = self.bilm.config.context
        if self.device.type == "cpu":
            factor = 2 if context.cell_dim >= _LARGE_CELL else 1
            return factor * _CPU_TOKENS, factor * _CPU_SENTENCES
        tokens = _GPU_VALUES // context.output_dim
        return tokens, max(1, tokens // _GPU_TOKENS_PER_SENTENCE)

    @contextlib.contextmanager
    def _explain_out_of_memory(self, what: str, remedy: str) -> Iterator[None]:
        """If memory runs out, raise an error that says what does not fit and what to do."""
        try:
            yield
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"{what} not fit in the memory of {self.device}; {remedy}"
            ) from error

    @contextlib.contextmanager
    def _isolated(self) -> Iterator[None]:
        """Run without gradients, and independently of the caller's autocast and current device.

        Autocast would change the numbers and leave them in the cache. Kernels run on the current
        device.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.autocast(self.device.type, enabled=False))
            if self.device.type == "cuda":
                stack.enter_context(torch.cuda.device(self.device))
            yield


def _too_long(n_tokens: int, device: torch.device) -> OutOfMemoryError:
    remedy = "split it, or choose fewer layers" + ("" if device.type == "cpu" else ", or use a CPU")
    return OutOfMemoryError(
        f"a sentence of {n_tokens} tokens does not fit in the memory of {device}; {remedy}"
    )
