"""Sentences of tokens to layers, batch by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from elmokit.errors import OutOfMemoryError
from elmokit.inference.batches import NumberedSentences, Windows, plan_batches
from elmokit.inference.states import CarriedState, StartState
from elmokit.inference.word_cache import WordCache
from elmokit.nn.bilm import BiLM, BiLMState
from elmokit.text.characters import Alphabet

CARRIED_BATCH_SIZE = 64
"""Sentences of a batch with carried state, where batches matter; the default of AllenNLP."""

Result = TypeVar("Result")

_CPU_TOKENS, _CPU_SENTENCES = 8192, 256
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
            self._room = like.new_empty(n_values)
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
            yield from map(then, self._run_carried(sentences, upto, start, rows))
            return
        memory, first = _Memory(), 0
        windows = Windows(sentences, self.alphabet.begin, self.alphabet.end)
        while window := windows.take():
            for result in self._run_window(window, first, then, upto, start, batch_size, memory):
                windows.read_ahead()  # a GPU computes meanwhile
                yield result
            first += len(window.lengths)

    def _at_once(self) -> tuple[int, int]:
        """Most padded tokens and sentences of a batch."""
        if self.device.type == "cpu":
            return _CPU_TOKENS, _CPU_SENTENCES
        tokens = _GPU_VALUES // self.bilm.config.context.output_dim
        return tokens, max(1, tokens // _GPU_TOKENS_A_SENTENCE)

    def _run_window(
        self,
        window: NumberedSentences,
        first: int,
        then: Callable[[BatchResult], Result],
        upto: int | None,
        start: BiLMState | None,
        batch_size: int | None,
        memory: _Memory,
    ) -> Iterator[Result]:
        """Batches of some sentences, whose first is number first; less at once if need be."""
        kind = self.device.type
        most, rows = self._at_once()
        rows = batch_size or rows
        budget = self._max_tokens.setdefault(kind, most)
        lengths = window.lengths + 2
        todo = deque(plan_batches(range(len(lengths)), lengths, budget, rows))
        while todo:
            indices = todo.popleft()
            try:
                batch, _ = self._run_batch(window, indices, upto, start, memory)
                batch.indices = [first + i for i in indices]
                result = then(batch)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                if len(indices) == 1:
                    raise _too_long(int(lengths[indices[0]]) - 2, self.device) from error
            else:
                yield result
                continue
            # out of memory: from now on, half as much at once
            if kind == "cuda":
                torch.cuda.empty_cache()
            rows = len(indices) // 2
            self._max_tokens[kind] = rows * int(lengths[indices[0]])
            rest = [*indices, *(i for batch in todo for i in batch)]
            todo = deque(plan_batches(rest, lengths, self._max_tokens[kind], rows))

    def _run_carried(
        self, sentences: Sequence[Sequence[str]], upto: int | None, start: CarriedState, rows: int
    ) -> Iterator[BatchResult]:
        """Batches in the order given; the state of a row passes over its empty sentences."""
        memory = _Memory()
        for first in range(0, len(sentences), rows):
            some = NumberedSentences(self.alphabet.begin, self.alphabet.end)
            some.add(sentences[first : first + rows])
            some.close()
            indices = list(range(len(some.lengths)))
            before = start.rows(len(indices), self.bilm)
            try:
                # all layers, as a state with some layers missing could not be carried on
                result, final = self._run_batch(some, indices, None, before, memory)
                result.indices = [first + i for i in indices]
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                # in two halves it would be another result
                raise OutOfMemoryError(
                    f"a batch of {len(indices)} sentences does not fit in the memory of "
                    f"{self.device}; give a smaller batch_size"
                ) from error
            start.keep(_where_read(result.lengths, final, before))
            if upto is not None:
                result.layers = result.layers[: upto + 1]
            yield result

    def _run_batch(
        self,
        sentences: NumberedSentences,
        indices: list[int],
        upto: int | None,
        start: BiLMState | None,
        memory: _Memory,
    ) -> tuple[BatchResult, BiLMState]:
        # a caller's autocast would change the numbers, and stay in the cache
        with torch.inference_mode(), torch.autocast(self.device.type, enabled=False):
            words, places = sentences.batch(indices)
            tokens = self.cache.vectors(words, places)
            lengths = sentences.lengths[indices]
            if start is not None and len(start) != len(indices):
                start = start.map(lambda t: t.expand(len(indices), -1))
            context = self.bilm.config.context
            n_layers = (context.n_layers if upto is None else upto) + 1
            room = memory.of(n_layers * places.size * context.output_dim, tokens)
            layers, final = self.bilm(tokens, torch.from_numpy(lengths + 2), start, upto, room)
            return BatchResult(indices, lengths.tolist(), layers), final


def _where_read(lengths: list[int], final: BiLMState, before: BiLMState) -> BiLMState:
    """The new state of sentences with tokens, the old one of empty ones."""
    if all(lengths):
        return final
    device = final.directions[0][0][0].device
    read = torch.tensor([n > 0 for n in lengths], device=device)[:, None]
    return BiLMState(
        [
            [
                (torch.where(read, h, old_h), torch.where(read, c, old_c))
                for (h, c), (old_h, old_c) in zip(new, old, strict=True)
            ]
            for new, old in zip(final.directions, before.directions, strict=True)
        ]
    )


def _too_long(n_tokens: int, device: torch.device) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"a sentence of {n_tokens} tokens does not fit in the memory of {device}; split it, ask "
        "for fewer layers, or use the CPU"
    )


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error) or "out of memory" in str(error)
    )
