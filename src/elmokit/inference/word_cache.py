"""Token vectors of words already seen, in bounded memory.

A word's token vector depends on the word alone, so keeping it changes nothing but the rounding of
the last bits.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.nn.weight_watch import WeightWatch
from elmokit.text.characters import Alphabet

_WORDS_AT_ONCE = 1024
_CHARACTERS_AT_ONCE = 16_384  # columns × words through the CNN together, to bound its memory


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
        self._slots: dict[str, int] = {}  # in order of use, the last used last
        self._table: Tensor | None = None  # (at most capacity, P), grown as needed
        self._watch = WeightWatch(encoder)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        """Forget all words."""
        with self._lock:
            self._slots, self._table = {}, None

    def check_weights(self) -> None:
        """Forget all words if the encoder was trained further, reloaded or moved."""
        with self._lock:
            if self._watch.changed():
                self._slots, self._table = {}, None

    def __getstate__(self) -> dict[str, Any]:
        """For copying and pickling: without the lock, and without what can be computed again."""
        return self.__dict__ | {"_lock": None, "_slots": {}, "_table": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_lock": threading.Lock()}

    @torch.inference_mode()
    def vectors(self, words: Sequence[str]) -> Tensor:
        """Token vectors (W, P) of W distinct words, at least one."""
        if len(words) > self.capacity:
            return self._encode(words)
        with self._lock:
            missing = [word for word in words if word not in self._slots]
            for word in words:  # make these the last used, before any word is dropped
                if (slot := self._slots.pop(word, None)) is not None:
                    self._slots[word] = slot
            if missing:
                self._store(missing, self._encode(missing))
            assert self._table is not None
            slots = [self._slots[word] for word in words]
            return self._table[torch.tensor(slots, device=self._table.device)]

    def _store(self, words: Sequence[str], vectors: Tensor) -> None:
        """Give each new word a slot: a fresh one while there is room, else the oldest word's."""
        n_used = len(self._slots)
        n_fresh = min(len(words), self.capacity - n_used)
        rows = 0 if self._table is None else len(self._table)
        if n_used + n_fresh > rows:
            grown = vectors.new_empty(
                min(self.capacity, max(2 * rows, n_used + n_fresh)), vectors.shape[1]
            )
            if self._table is not None:
                grown[:rows] = self._table
            self._table = grown
        oldest = [self._slots.pop(next(iter(self._slots))) for _ in range(len(words) - n_fresh)]
        slots = [*range(n_used, n_used + n_fresh), *oldest]
        assert self._table is not None
        self._table[torch.tensor(slots, device=vectors.device)] = vectors
        self._slots.update(zip(words, slots, strict=True))

    def _encode(self, words: Sequence[str]) -> Tensor:
        """Token vectors (W, P), through the CNN in groups of words of like length."""
        order = sorted(range(len(words)), key=lambda i: len(words[i]))
        device = next(self._encoder.parameters()).device
        parts = []
        for start in range(0, len(words), _WORDS_AT_ONCE):
            some = [words[i] for i in order[start : start + _WORDS_AT_ONCE]]
            ids = torch.from_numpy(self._alphabet.encode(some)).to(device)
            rows = max(1, _CHARACTERS_AT_ONCE // ids.shape[1])
            parts += [self._encoder(ids[i : i + rows]) for i in range(0, len(ids), rows)]
        vectors = torch.cat(parts)
        result = torch.empty_like(vectors)
        result[torch.tensor(order, device=device)] = vectors
        return result
