"""A bounded cache of token vectors.

A token vector depends on its word alone, so caching it changes results by rounding at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from elmokit.devices import to_device
from elmokit.kernels.fork_lock import ForkLock
from elmokit.kernels.weight_watch import WeightSnapshot
from elmokit.nn.words import encode_words
from elmokit.text.characters import Alphabet

_LONGEST_KEPT = 256  # characters; the words themselves take memory too, beside their vectors


class WordCache:
    """The token encoder with a cache that drops the least recently used words first.

    Very long words are not kept.

    Args:
        encoder: Turns character ids (W, C) into token vectors (W, P).
        alphabet: Turns words into character ids.
        output_dim: P.
        max_bytes: Memory limit for cached vectors; 0 disables the cache.
    """

    def __init__(
        self, encoder: nn.Module, alphabet: Alphabet, output_dim: int, max_bytes: int
    ) -> None:
        self._encoder, self._alphabet = encoder, alphabet
        self.capacity = max_bytes // (4 * output_dim)
        self._weights = WeightSnapshot(encoder.parameters())
        self._lock = ForkLock(self._forget)
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[str, int] = {}
        self._words = [""]  # by row; row 0 holds zeros and belongs to no word
        self._free: list[int] = []  # rows of dropped words
        self._last_used = np.zeros(1, np.int64)  # by row: the number of the call
        self._calls = 0
        self._table: Tensor | None = None  # (≥ rows, P), grown on demand

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        """Drop all words."""
        with self._lock:
            self._forget()

    def check_weights(self) -> None:
        """Drop all words if the weights of the encoder have changed or moved."""
        with self._lock:
            now = WeightSnapshot(self._encoder.parameters())
            if now != self._weights:
                self._forget()
                self._weights = now

    def __getstate__(self) -> dict[str, Any]:
        """For copying and pickling: everything but the lock and the cached vectors."""
        kept = ("_encoder", "_alphabet", "capacity")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_lock": ForkLock(self._forget)}
        self._weights = WeightSnapshot(self._encoder.parameters())
        self._forget()

    @torch.inference_mode()
    def vectors(self, words: Sequence[str]) -> Tensor:
        """Token vectors (1 + W, P) of one or more distinct words, in order; row 0 is zeros."""
        with self._lock:
            if len(words) > self.capacity:  # too many to cache
                return self._encode(words)
            try:
                rows = self._look_up(words)
            except BaseException:  # an interrupted update could leave a word with another's vector
                self._forget()
                raise
            assert self._table is not None
            # a copy, because the next call may give a row to another word
            index = torch.from_numpy(np.concatenate([[0], rows]))
            return self._table.index_select(0, to_device(index, self._table.device))

    def _look_up(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """The table row of every word; new words are added."""
        self._calls += 1
        rows = np.fromiter(map(self._rows.get, words, repeat(0)), np.int64, len(words))
        self._last_used[rows] = self._calls
        new = np.flatnonzero(rows == 0)
        if len(new):
            rows[new] = self._store([words[i] for i in new.tolist()], len(words) - len(new))
        return rows

    def _store(self, words: list[str], in_use: int) -> list[int]:
        """Assign each new word a row: one of a dropped word if possible, else a new one.

        Args:
            words: Distinct words that are not cached.
            in_use: The number of cached words this call needs too; they must stay.
        """
        vectors = self._encode(words)[1:]
        missing = len(words) - (self.capacity - len(self._rows))
        if missing > 0:
            # drop more than needed, because finding the least recently used is slow
            n = min(max(missing, self.capacity // 16), len(self._rows) - in_use)
            used = np.fromiter(self._rows.values(), np.int64, len(self._rows))
            for row in used[np.argpartition(self._last_used[used], n - 1)[:n]].tolist():
                del self._rows[self._words[row]]
                self._free.append(row)
        n_reused = min(len(words), len(self._free))
        n_rows = len(self._words) + len(words) - n_reused
        size = 0 if self._table is None else len(self._table)
        if n_rows > size:
            grown = vectors.new_zeros(
                min(self.capacity + 1, max(2 * size, n_rows)), vectors.shape[1]
            )
            if self._table is not None:
                grown[:size] = self._table
            self._table = grown
            self._last_used = np.pad(self._last_used, (0, len(grown) - len(self._last_used)))
        rows = [self._free.pop() for _ in range(n_reused)]
        rows += range(len(self._words), n_rows)
        self._words += [""] * (n_rows - len(self._words))
        assert self._table is not None
        self._table[to_device(torch.tensor(rows), vectors.device)] = vectors
        self._last_used[rows] = self._calls
        for word, row in zip(words, rows, strict=True):
            if len(word) <= _LONGEST_KEPT:
                self._rows[word], self._words[row] = row, word
            else:  # the next call may take this row
                self._free.append(row)
        return rows

    def _encode(self, words: Sequence[str]) -> Tensor:
        """Token vectors (1 + W, P), computed by the CNN; row 0 is zeros."""
        return encode_words(self._encoder, self._alphabet, words)
