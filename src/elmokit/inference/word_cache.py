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

from elmokit.devices import to_device
from elmokit.nn.weight_watch import WeightSnapshot
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
            try:
                table, rows = self._look_up(words)
                # a copy, as a row may be another word's by the next call
                at = torch.from_numpy(np.concatenate([[0], rows]))
                return table.index_select(0, to_device(at, table.device))
            except BaseException:  # half done, words could be left with others' vectors
                self._forget()
                raise

    def _look_up(self, words: Sequence[str]) -> tuple[Tensor, npt.NDArray[np.int64]]:
        """A table of vectors, and the row there of every word."""
        if len(words) > self.capacity:  # they do not fit together, so that none is kept
            vectors = self._encode(words)
            table = torch.cat([vectors.new_zeros(1, vectors.shape[1]), vectors])
            return table, np.arange(1, len(words) + 1)
        self._calls += 1
        rows = np.fromiter(map(self._rows.get, words, repeat(0)), np.int64, len(words))
        self._last_used[rows] = self._calls
        new = np.flatnonzero(rows == 0)
        if len(new):
            rows[new] = self._store([words[i] for i in new.tolist()], len(words) - len(new))
        assert self._table is not None
        return self._table, rows

    def _store(self, words: list[str], in_use: int) -> list[int]:
        """Give each new word a row: a dropped word's where there is one, else a fresh one.

        Args:
            words: Distinct words not yet known.
            in_use: How many rows this call needs besides, which must stay.
        """
        vectors = self._encode(words)
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
        """Token vectors (W, P), through the CNN in groups of words of like length."""
        order = sorted(range(len(words)), key=lambda i: len(words[i]))
        device = next(self._encoder.parameters()).device
        group, characters = _WORDS_AT_ONCE, _CHARACTERS_AT_ONCE
        if device.type != "cpu":
            group, characters = _GPU_WORDS_AT_ONCE, _GPU_CHARACTERS_AT_ONCE
        parts = []
        for start in range(0, len(words), group):
            some = [words[i] for i in order[start : start + group]]
            ids = to_device(torch.from_numpy(self._alphabet.encode(some)), device)
            rows = max(1, characters // ids.shape[1])
            parts += [self._encoder(ids[i : i + rows]) for i in range(0, len(ids), rows)]
        vectors = torch.cat(parts)
        result = torch.empty_like(vectors)
        result[to_device(torch.tensor(order), device)] = vectors
        return result
