"""Sentences in capitals or in small letters, as people write them who are in a hurry, or shout.

An encyclopedia has few of them, so that a model of it knows HELP worse than help. Where some
sentences are read in another case, while the words to predict stay as they are, it learns that
both are one word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError
from elmokit.pretrain.data.corpus import Codes
from elmokit.pretrain.data.training_batches import FIRST_WORD, TrainingBatch


def in_other_cases(words: Sequence[str]) -> tuple[list[str], Codes]:
    """Words, with the same codes, and what they become in capitals and in small letters.

    Args:
        words: What is read, by code; the marks come first, and have no case.

    Returns:
        All of them, and codes (3, words given): as they are, in capitals, in small letters.
    """
    marks, written = words[:FIRST_WORD], words[FIRST_WORD:]
    number = {word: FIRST_WORD + i for i, word in enumerate(written)}
    rows = [[*range(len(words))]]
    for case in (str.upper, str.lower):
        # what would be a mark stays as it is
        others = [word if (other := case(word)) in marks else other for word in written]
        for other in others:
            number.setdefault(other, FIRST_WORD + len(number))
        rows.append([*range(FIRST_WORD), *map(number.__getitem__, others)])
    if len(number) == len(written):
        raise InputError(
            "training.recased has no effect on this text, none of whose words changes in capitals "
            "or small letters; leave it out"
        )
    return [*marks, *number], np.array(rows, np.int32)


class OtherCases:
    """Some sentences all in capitals, and as many all in small letters.

    Args:
        codes: As :func:`in_other_cases` gives them.
        share: Of sentences that are read that way, both kinds together.
        n_sentences: How many there are.
        seed: Decides which.
    """

    def __init__(self, codes: Codes, share: float, n_sentences: int, seed: int) -> None:
        self._codes, self._share = codes, share
        self._n, self._seed = n_sentences, seed
        self._drawn: tuple[int, npt.NDArray[np.int8]] = (-1, np.zeros(0, np.int8))

    def read(self, batch: TrainingBatch) -> Codes:
        """The inputs (2, N) of a batch, some sentences in another case; others each epoch."""
        return self._codes[self._cases(batch.epoch)[batch.sentences], batch.inputs]

    def _cases(self, epoch: int) -> npt.NDArray[np.int8]:
        """Of each sentence, which row of the codes is read."""
        drawn, cases = self._drawn  # at once, as another thread may ask for another epoch
        if drawn != epoch:
            # not [seed, 2, epoch]: zeros at the end do not count, and [seed, 2] orders epoch 2
            chance = np.random.default_rng([self._seed, 2, epoch, 1]).random(self._n)
            cases = (chance < self._share).astype(np.int8) + (chance < self._share / 2)
            self._drawn = (epoch, cases)
        return cases
