"""Sentences in capitals or in small letters, as people write them who are in a hurry, or shout.

An encyclopedia has few of them, so that a model of it knows HELP worse than help. Where some
sentences are read in another case, while the words to predict stay as they are, it learns that the
two are one word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elmokit.data.batches import FIRST_WORD, TrainingBatch
from elmokit.data.corpus import Codes


class OtherCases:
    """Words as they are read in sentences that are all in capitals, or all in small letters.

    Args:
        words: What is read, by code; the marks come first, and have no case.
        share: How many of all sentences are read that way, one half in capitals.
        seed: Decides which.
    """

    def __init__(self, words: Sequence[str], share: float, seed: int) -> None:
        self._share, self._seed = share, seed
        marks, written = words[:FIRST_WORD], words[FIRST_WORD:]
        cases = [[word.upper() for word in written], [word.lower() for word in written]]
        number = {word: FIRST_WORD + i for i, word in enumerate(written)}
        for word in (word for case in cases for word in case):
            number.setdefault(word, FIRST_WORD + len(number))
        self.words = [*marks, *number]
        """Those given, with the same codes, and what they become."""
        self._codes = np.array(
            [[*range(FIRST_WORD), *map(number.__getitem__, case)] for case in (written, *cases)],
            np.int32,
        )  # (3, words given): as they are, in capitals, in small letters

    def read(self, batch: TrainingBatch, step: int) -> Codes:
        """The inputs (2, N) of a batch, some of its rows in another case."""
        rng = np.random.default_rng([self._seed, 2, step])
        # drawn for the rows of all processes, so that it does not matter how many there are
        drawn = rng.random(int(batch.rows.max()) + 1)[batch.rows]
        case = np.where(drawn < self._share, 1 + (drawn < self._share / 2), 0)
        steps = np.arange(int(batch.lengths.max()))[:, None]
        row = np.nonzero(steps < batch.lengths)[1]
        return self._codes[case[row], batch.inputs]
