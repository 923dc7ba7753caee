"""Which sentences run together, and their words as numbers."""

from __future__ import annotations

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
        sentences: Tokens without sentence marks.
        begin: The mark before each…
        end: …and behind it.
    """

    def __init__(self, sentences: Sequence[Sequence[str]], begin: str, end: str) -> None:
        number: defaultdict[str, int] = defaultdict(count(1).__next__)  # 0 is none
        self._marks = number[begin], number[end]
        self.lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        self._ends = np.cumsum(self.lengths)
        total = int(self._ends[-1]) if len(sentences) else 0
        all_words = chain.from_iterable(sentences)
        self._numbers = np.fromiter(map(number.__getitem__, all_words), np.int32, total)
        self._words = [*number]

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
