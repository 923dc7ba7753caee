"""Which sentences run together, and their words as numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, count

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]


def plan_batches(
    indices: Sequence[int] | Numbers, lengths: Numbers, max_tokens: int, max_sentences: int
) -> Iterator[list[int]]:
    """Group sentences of like length, longest first, within a budget of padded tokens.

    Longest first, because then memory is highest in the first batch, and a failure comes at once.

    Args:
        indices: Which sentences.
        lengths: Tokens of every sentence.
        max_tokens: Most padded tokens (sentences × longest) of a batch; one longer sentence is a
            batch of its own.
        max_sentences: Most sentences of a batch.

    Yields:
        The indices, each exactly once.
    """
    indices = np.asarray(indices, np.int64)
    order = indices[np.argsort(-lengths[indices], kind="stable")]
    first = 0
    while first < len(order):
        longest = max(1, int(lengths[order[first]]))
        n = max(1, min(max_sentences, max_tokens // longest))
        yield order[first : first + n].tolist()
        first += n


class NumberedSentences:
    """Sentences whose words have been looked at once, in the order in which they lie in memory.

    Batches, whose sentences lie anywhere, are then made of numbers alone.

    Args:
        begin: The mark before each sentence…
        end: …and behind it.
    """

    def __init__(self, begin: str, end: str) -> None:
        self._number: defaultdict[str, int] = defaultdict(count(1).__next__)  # 0 is none
        self._marks = self._number[begin], self._number[end]
        self._parts: list[tuple[Numbers, Places]] = []
        self.lengths = np.zeros(0, np.int64)

    def add(self, sentences: Sequence[Sequence[str]]) -> None:
        """Number some more sentences, given as tokens without marks."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        words = chain.from_iterable(sentences)
        numbers = map(self._number.__getitem__, words)
        self._parts.append((lengths, np.fromiter(numbers, np.int32, int(lengths.sum()))))

    def close(self) -> None:
        """No more will be added, and batches can be asked for."""
        self._words = [*self._number]
        self.lengths = np.concatenate([self.lengths, *(lengths for lengths, _ in self._parts)])
        self._numbers = np.concatenate([np.zeros(0, np.int32), *(n for _, n in self._parts)])
        self._ends = np.cumsum(self.lengths)
        self._parts = []

    def batch(self, indices: Sequence[int]) -> tuple[list[str], Places]:
        """Some sentences between their marks.

        Returns:
            Their W distinct words, and which of these, from 1, is at each place (B, T); 0 behind a
            sentence's end.
        """
        lengths = self.lengths[indices]
        places = np.zeros((len(lengths), int(lengths.max()) + 2), np.int32)
        within = np.arange(places.shape[1])
        # where the sentences' numbers lie: runs of consecutive places, one after another
        ends = np.cumsum(lengths)
        runs = np.repeat(self._ends[indices] - ends, lengths) + np.arange(ends[-1])
        numbers = self._numbers[runs]
        used = np.zeros(len(self._words) + 1, np.int32)
        used[numbers] = 1
        used[list(self._marks)] = 1
        known = np.flatnonzero(used)
        used[known] = np.arange(1, len(known) + 1)
        places[(within > 0) & (within <= lengths[:, None])] = used[numbers]
        places[:, 0] = used[self._marks[0]]
        places[np.arange(len(lengths)), lengths + 1] = used[self._marks[1]]
        return [self._words[i - 1] for i in known.tolist()], places


class Windows:
    """Sentences in windows, each numbered as a whole while the one before it is computed.

    Sorting by length wants large windows; the first are smaller, as nothing is computed until then.

    Args:
        sentences: Tokens without sentence marks.
        begin: The mark before each sentence…
        end: …and behind it.
    """

    _FIRST, _MOST = 8192, 65_536

    def __init__(self, sentences: Sequence[Sequence[str]], begin: str, end: str) -> None:
        self._sentences, self._marks = sentences, (begin, end)
        self._next = NumberedSentences(begin, end)
        self._at, self._until, self._size = 0, self._FIRST, self._FIRST

    def read_ahead(self, share: float) -> None:
        """Number some sentences of the next window, this share of all of them."""
        until = min(self._at + math.ceil(share * self._size), self._until)
        if until > self._at:
            self._next.add(self._sentences[self._at : until])
            self._at = until

    def take(self) -> NumberedSentences | None:
        """The next window; None behind the last."""
        self.read_ahead(1)
        window = self._next
        window.close()
        self._next = NumberedSentences(*self._marks)
        self._at = min(self._until, len(self._sentences))
        self._size = min(2 * self._size, self._MOST)
        self._until = self._at + self._size
        return window if len(window.lengths) else None
