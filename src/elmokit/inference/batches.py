"""Which sentences run together, and their words as numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.devices import to_device

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Tokens = TypeVar("Tokens", bound=Sequence[str])

_WINDOW_SENTENCES = 16_384


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


def token_windows(
    sentences: Iterable[Tokens], max_tokens: int, multiple: int = 1
) -> Iterator[list[Tokens]]:
    """Split a stream of sentences into lists of about ``max_tokens`` tokens.

    Args:
        sentences: Tokens of each sentence.
        max_tokens: A window ends with the sentence that reaches this.
        multiple: Every window but the last holds a multiple of this many sentences.
    """
    window: list[Tokens] = []
    n_tokens = 0
    for tokens in sentences:
        window.append(tokens)
        n_tokens += len(tokens)
        full = n_tokens >= max_tokens or len(window) >= _WINDOW_SENTENCES
        if full and len(window) % multiple == 0:
            yield window
            window, n_tokens = [], 0
    if window:
        yield window


class NumberedSentences:
    """Sentences whose words have been looked at once, in the order in which they lie in memory.

    Batches, whose sentences lie anywhere, are then made of numbers alone, by a GPU if there is one.

    Args:
        begin: The mark before each sentence…
        end: …and behind it.
    """

    def __init__(self, begin: str, end: str) -> None:
        self._number: defaultdict[str, int] = defaultdict(count(1).__next__)  # 0 is none
        self._marks = self._number[begin], self._number[end]
        self._parts: list[tuple[Numbers, Codes]] = []
        self.lengths = np.zeros(0, np.int64)
        self.words: list[str] = []
        """All distinct words, once no more are added; the first has the number 1."""

    def add(self, sentences: Sequence[Sequence[str]]) -> None:
        """Number some more sentences, given as tokens without marks."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        words = chain.from_iterable(sentences)
        numbers = map(self._number.__getitem__, words)
        self._parts.append((lengths, np.fromiter(numbers, np.int32, int(lengths.sum()))))

    def close(self) -> None:
        """No more will be added, and batches can be asked for."""
        self.words = [*self._number]
        self.lengths = np.concatenate([self.lengths, *(lengths for lengths, _ in self._parts)])
        self._starts = np.cumsum(self.lengths) - self.lengths
        # one more before the first sentence, in whose place its mark is put
        numbers = [np.zeros(1, np.int32), *(n for _, n in self._parts)]
        self._numbers = torch.from_numpy(np.concatenate(numbers))
        self._parts = []

    def places(self, indices: Sequence[int], device: torch.device) -> Tensor:
        """Some sentences between their marks, put together on the device.

        Returns:
            The number of the word at each place (B, T), 0 behind a sentence's end.
        """
        if self._numbers.device != device:
            self._numbers = to_device(self._numbers, device)
        lengths = self.lengths[indices]
        where = to_device(torch.from_numpy(np.stack([self._starts[indices], lengths])), device)
        starts, ends = where[0, :, None], where[1, :, None] + 1
        at = torch.arange(int(lengths.max()) + 2, device=device)
        inside = (at > 0) & (at < ends)
        places = self._numbers[(starts + at).clamp_(max=len(self._numbers) - 1)]
        places = torch.where(inside, places, 0)
        places[:, 0] = self._marks[0]
        return places.scatter_(1, ends, self._marks[1])


class Windows:
    """Sentences in windows, each numbered as a whole while the one before it is computed.

    Sorting by length wants large windows; the first are smaller, as nothing is computed until then.

    Args:
        sentences: Tokens without sentence marks.
        begin: The mark before each sentence…
        end: …and behind it.
        first: Sentences of the first window, each later one having twice as many…
        most: …up to so many.
    """

    def __init__(
        self, sentences: Sequence[Sequence[str]], begin: str, end: str, first: int, most: int
    ) -> None:
        self._sentences, self._marks, self._most = sentences, (begin, end), most
        self._next = NumberedSentences(begin, end)
        self._at, self._until, self._size = 0, first, first

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
        self._size = min(2 * self._size, self._most)
        self._until = self._at + self._size
        return window if len(window.lengths) else None
