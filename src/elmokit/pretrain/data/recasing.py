"""Case augmentation: reads some sentences in capitals or in lower case.

An encyclopedia has few such sentences, so a model trained on it knows HELP worse than help. If it
reads some sentences in another case and still predicts the original words, it learns that both are
the same word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError
from elmokit.pretrain.data.corpus import Codes
from elmokit.pretrain.data.training_batches import FIRST_WORD, TrainingBatch


def in_other_cases(words: Sequence[str]) -> tuple[list[str], Codes]:
    """Add the forms of words in capitals and in lower case.

    Args:
        words: Input words by code; the marks come first and have no case.

    Returns:
        The words followed by all new forms, and their codes (3, words given): unchanged, in
        capitals, in lower case.
    """
    marks, written = words[:FIRST_WORD], words[FIRST_WORD:]
    number = {word: FIRST_WORD + i for i, word in enumerate(written)}
    rows = [[*range(len(words))]]
    for case in (str.upper, str.lower):
        # a form that would be a mark is not used
        others = [word if (other := case(word)) in marks else other for word in written]
        for other in others:
            number.setdefault(other, FIRST_WORD + len(number))
        rows.append([*range(FIRST_WORD), *map(number.__getitem__, others)])
    if len(number) == len(written):
        raise InputError(
            "training.recased has no effect on this text, because its words have no upper and "
            "lower case; leave it out"
        )
    return [*marks, *number], np.array(rows, np.int32)


class OtherCases:
    """Reads some sentences in capitals, and as many in lower case.

    Args:
        codes: From :func:`in_other_cases`.
        share: Fraction of sentences to change, both kinds together.
        n_sentences: Number of sentences in the text.
        seed: Decides which sentences change.
    """

    def __init__(self, codes: Codes, share: float, n_sentences: int, seed: int) -> None:
        self._codes, self._share = codes, share
        self._n, self._seed = n_sentences, seed
        self._drawn: tuple[int, npt.NDArray[np.int8]] = (-1, np.zeros(0, np.int8))

    def read(self, batch: TrainingBatch) -> Codes:
        """Return the inputs (2, N) of a batch with some sentences changed, others in each epoch."""
        return self._codes[self._cases(batch.epoch)[batch.sentences], batch.inputs]

    def _cases(self, epoch: int) -> npt.NDArray[np.int8]:
        """Return the row of the codes to read for each sentence."""
        drawn, cases = self._drawn  # read once: another thread may need another epoch
        if drawn != epoch:
            # not [seed, 2, epoch]: trailing zeros are ignored, and [seed, 2] shuffles epoch 2
            chance = np.random.default_rng([self._seed, 2, epoch, 1]).random(self._n)
            cases = (chance < self._share).astype(np.int8) + (chance < self._share / 2)
            self._drawn = (epoch, cases)
        return cases
