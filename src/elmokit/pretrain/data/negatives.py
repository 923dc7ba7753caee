"""Random words for the sampled softmax."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from elmokit.errors import ConfigError


class Negatives:
    """Samples words by rank: the k-th most frequent word with a probability of about 1 / k.

    Args:
        vocabulary_size: V; words are sorted by frequency.
        samples: Number of distinct words S to sample, less than V.
    """

    def __init__(self, vocabulary_size: int, samples: int) -> None:
        if samples >= vocabulary_size:
            raise ConfigError(
                f"cannot sample {samples:,} distinct words from a vocabulary of "
                f"{vocabulary_size:,}; choose a smaller softmax.samples, or softmax.kind=full"
            )
        self._n, self._samples = vocabulary_size, samples

    def draw(self, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], int]:
        """Return distinct words (S,) and the number of draws it took to find them."""
        drawn = np.zeros(0, np.int64)
        while True:
            more = rng.random(4 * self._samples)
            words = np.exp(more * math.log(self._n + 1)).astype(np.int64) - 1
            drawn = np.concatenate([drawn, words.clip(0, self._n - 1)])
            found, first = np.unique(drawn, return_index=True)
            if len(found) >= self._samples:
                break
        first = np.sort(first)[: self._samples]
        return drawn[first], int(first[-1]) + 1
