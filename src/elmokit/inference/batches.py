"""Group sentences into batches and windows, and turn their words into numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, count
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.devices import to_device

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Tokens = TypeVar("Tokens", bound=Sized)

_WINDOW_SENTENCES = 16_384


def plan_batches(
    indices: Sequence[int] | Numbers, lengths: Numbers, max_tokens: int, max_sentences: int
) -> Iterator[list[int]]:
    """Group sentences of similar length, within a budget of padded tokens.

    The longest come first: the first batch needs the most memory, so a failure shows at once.

    Args:
        indices: The sentences to group.
        lengths: The number of tokens of every sentence.
        max_tokens: The largest number of padded tokens (sentences × longest) in a batch. A longer
            sentence is a batch of its own.
        max_sentences: The largest number of sentences in a batch.

    Yields:
        The indices of each batch; every index exactly once.
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
        sentences: The tokens of each sentence.
        max_tokens: A window ends with the sentence that reaches this number of tokens.
        multiple: The number of sentences in every window but the last is a multiple of this.
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
    """Sentences as numbers, one number per distinct word.

    Every string is read once, in its order in memory, which is fast. Batches take sentences from
    anywhere, but need only the numbers, and a GPU can collect those.

    Args:
        begin: The mark before each sentence.
        end: The mark after each sentence.
    """

    def __init__(self, begin: str, end: str) -> None:
        self._number: defaultdict[str, int] = defaultdict(count(1).__next__)  # 0 is padding
        self._marks = self._number[begin], self._number[end]
        self._parts: list[tuple[Numbers, Codes]] = []
        self.lengths = np.zeros(0, np.int64)
        self.words: list[str] = []
        """All distinct words, set by :meth:`close`; the first has the number 1."""

    def add(self, sentences: Sequence[Sequence[str]]) -> None:
        """Add sentences, given as tokens without marks."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        words = chain.from_iterable(sentences)
        numbers = map(self._number.__getitem__, words)
        self._parts.append((lengths, np.fromiter(numbers, np.int32, int(lengths.sum()))))

    def close(self) -> None:
        """Finish adding; :meth:`places` can be called from now on."""
        self.words = [*self._number]
        self.lengths = np.concatenate([self.lengths, *(lengths for lengths, _ in self._parts)])
        self._starts = np.cumsum(self.lengths) - self.lengths
        # one number before the first sentence, because places() reads one before each
        numbers = [np.zeros(1, np.int32), *(n for _, n in self._parts)]
        self._numbers = torch.from_numpy(np.concatenate(numbers))
        self._parts = []

    def places(self, indices: Sequence[int], device: torch.device) -> Tensor:
        """Some sentences with their marks, as one tensor on the device.

        Returns:
            The number of the word at each position (B, T); 0 is padding.
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
    """Sentences in windows; each window is numbered while the one before it is computed.

    Large windows sort better by length. The first windows are small, because the device is idle
    until the first is numbered.

    Args:
        sentences: Tokens without sentence marks.
        begin: The mark before each sentence.
        end: The mark after each sentence.
        first: The number of sentences in the first window. Each later window has twice as many.
        most: The largest number of sentences in a window.
    """

    def __init__(
        self, sentences: Sequence[Sequence[str]], begin: str, end: str, first: int, most: int
    ) -> None:
        self._sentences, self._marks, self._most = sentences, (begin, end), most
        self._next = NumberedSentences(begin, end)
        self._at, self._until, self._size = 0, first, first

    def read_ahead(self, share: float) -> None:
        """Number this share of the sentences of the next window."""
        until = min(self._at + math.ceil(share * self._size), self._until)
        if until > self._at:
            self._next.add(self._sentences[self._at : until])
            self._at = until

    def take(self) -> NumberedSentences | None:
        """The next window; None after the last."""
        self.read_ahead(1)
        window = self._next
        window.close()
        self._next = NumberedSentences(*self._marks)
        self._at = min(self._until, len(self._sentences))
        self._size = min(2 * self._size, self._most)
        self._until = self._at + self._size
        return window if len(window.lengths) else None
