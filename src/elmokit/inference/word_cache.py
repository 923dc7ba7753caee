"""Token vectors of words already seen, in bounded memory.

A word's token vector depends on the word alone, so keeping it changes nothing but the rounding of
the last bits.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from elmokit.devices import is_out_of_memory, to_device
from elmokit.kernels.weight_watch import WeightSnapshot
from elmokit.text.characters import Alphabet

# words of like length, and columns × words, through the CNN together: a matter of memory
_WORDS_AT_ONCE, _GPU_WORDS_AT_ONCE = 1024, 8192
_CHARACTERS_AT_ONCE, _GPU_CHARACTERS_AT_ONCE = 16_384, 262_144


class WordCache:
    """The token encoder with a memory, least recently used words dropped first.

    Args:
        encoder: The module from ids (W, C) to token vectors (W, P).
        alphabet: What makes the ids.
        output_dim: P.
        max_bytes: Most memory the kept vectors may take; 0 keeps none.
    """

    def __init__(
        self, encoder: nn.Module, alphabet: Alphabet, output_dim: int, max_bytes: int
    ) -> None:
        self._encoder, self._alphabet = encoder, alphabet
        self.capacity = max_bytes // (4 * output_dim)
        self._weights = WeightSnapshot(encoder)
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[str, int] = {}
        self._words = [""]  # by row; row 0 is no word's, and all zeros
        self._free: list[int] = []  # rows of words dropped
        self._last_used = np.zeros(1, np.int64)  # by row: number of the call
        self._calls = 0
        self._table: Tensor | None = None  # (≥ rows, P), grown as needed

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        """Forget all words."""
        with self._lock:
            self._forget()

    def check_weights(self) -> None:
        """Forget all words if the encoder was trained further, reloaded or moved."""
        with self._lock:
            now = WeightSnapshot(self._encoder)
            if now != self._weights:
                self._forget()
                self._weights = now

    def __getstate__(self) -> dict[str, Any]:
        """For copying and pickling: without the lock, and without what can be computed again."""
        kept = ("_encoder", "_alphabet", "capacity")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_lock": threading.Lock()}
        self._weights = WeightSnapshot(self._encoder)
        self._forget()

    @torch.inference_mode()
    def vectors(self, words: Sequence[str]) -> Tensor:
        """Token vectors (1 + W, P) of distinct words, at least one, in their order; first zeros."""
        with self._lock:
            if len(words) > self.capacity:  # they do not fit together, so that none is kept
                return self._encode(words)
            try:
                rows = self._look_up(words)
            except BaseException:  # half done, words could be left with others' vectors
                self._forget()
                raise
            assert self._table is not None
            # a copy, as a row may be another word's by the next call
            at = torch.from_numpy(np.concatenate([[0], rows]))
            return self._table.index_select(0, to_device(at, self._table.device))

    def _look_up(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """The row of every word in the table."""
        self._calls += 1
        rows = np.fromiter(map(self._rows.get, words, repeat(0)), np.int64, len(words))
        self._last_used[rows] = self._calls
        new = np.flatnonzero(rows == 0)
        if len(new):
            rows[new] = self._store([words[i] for i in new.tolist()], len(words) - len(new))
        return rows

    def _store(self, words: list[str], in_use: int) -> list[int]:
        """Give each new word a row: a dropped word's where there is one, else a fresh one.

        Args:
            words: Distinct words not yet known.
            in_use: How many rows this call needs besides, which must stay.
        """
        vectors = self._encode(words)[1:]
        missing = len(words) - (self.capacity - len(self._rows))
        if missing > 0:
            # some more than needed, so that not every call has to look for the oldest
            n = min(max(missing, self.capacity // 16), len(self._rows) - in_use)
            used = np.fromiter(self._rows.values(), np.int64, len(self._rows))
            for row in used[np.argpartition(self._last_used[used], n - 1)[:n]].tolist():
                del self._rows[self._words[row]]
                self._free.append(row)
        n_again = min(len(words), len(self._free))
        n_rows = len(self._words) + len(words) - n_again
        size = 0 if self._table is None else len(self._table)
        if n_rows > size:
            grown = vectors.new_zeros(
                min(self.capacity + 1, max(2 * size, n_rows)), vectors.shape[1]
            )
            if self._table is not None:
                grown[:size] = self._table
            self._table = grown
            self._last_used = np.pad(self._last_used, (0, len(grown) - len(self._last_used)))
        rows = [self._free.pop() for _ in range(n_again)]
        rows += range(len(self._words), n_rows)
        self._words += [""] * (n_rows - len(self._words))
        assert self._table is not None
        self._table[to_device(torch.tensor(rows), vectors.device)] = vectors
        self._last_used[rows] = self._calls
        self._rows.update(zip(words, rows, strict=True))
        for word, row in zip(words, rows, strict=True):
            self._words[row] = word
        return rows

    def _encode(self, words: Sequence[str]) -> Tensor:
        """Token vectors (1 + W, P), first zeros, through the CNN in groups of like length.

        When memory runs out, the groups become smaller.
        """
        device = next(self._encoder.parameters()).device
        group, characters = _WORDS_AT_ONCE, _CHARACTERS_AT_ONCE
        if device.type != "cpu":
            group, characters = _GPU_WORDS_AT_ONCE, _GPU_CHARACTERS_AT_ONCE
        order = sorted(range(len(words)), key=lambda i: len(words[i]))
        result: Tensor | None = None
        done = 0
        while done < len(order):
            some = order[done : done + group]
            codes = self._alphabet.encode([words[i] for i in some])
            group = min(group, max(1, characters // codes.shape[1]))  # the words to come are longer
            some = some[:group]
            try:
                vectors = self._encoder(to_device(torch.from_numpy(codes[: len(some)]), device))
                if result is None:
                    result = vectors.new_zeros(1 + len(words), vectors.shape[1])
                result[to_device(torch.tensor(some) + 1, device)] = vectors
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if len(some) == 1 or not is_out_of_memory(error):
                    raise
                group = len(some) // 2
            else:
                done += len(some)
        assert result is not None
        return result
