"""Which words a model predicts, and how the words of a corpus map to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.data.batches import FIRST_WORD
from elmokit.data.corpus import Corpus
from elmokit.errors import InputError
from elmokit.text.vocabulary import Vocabulary

MARKS = (Vocabulary.begin, Vocabulary.end, Vocabulary.unknown)


def choose_words(corpus: Corpus, size: int, min_count: int) -> list[str]:
    """The marks, then the most frequent words of a corpus."""
    n = int(np.searchsorted(-corpus.counts, -min_count, "right"))
    words = [word for word in corpus.words[:n] if word not in MARKS]
    if not words:
        raise InputError(
            f"no word of the text occurs {min_count:,} times, so that there is none to predict; "
            "choose a lower text.min_count, or give more text"
        )
    return [*MARKS, *words[: size - len(MARKS)]]


def code_words(corpus: Corpus, begin: str, end: str) -> list[str]:
    """What is read, by code: the alphabet's marks, then the words of the corpus."""
    return [begin, end, *corpus.words]


def target_rows(corpus: Corpus, vocabulary: Sequence[str]) -> npt.NDArray[np.int32]:
    """By code, the row of the softmax: that of the mark, of the word, or of <UNK>."""
    row = {word: i for i, word in enumerate(vocabulary)}
    unknown = row[Vocabulary.unknown]
    rows = np.full(FIRST_WORD + corpus.n_words, unknown, np.int32)
    rows[:FIRST_WORD] = row[Vocabulary.begin], row[Vocabulary.end]
    marks = set(MARKS)
    rows[FIRST_WORD:] = [
        unknown if word in marks else row.get(word, unknown) for word in corpus.words
    ]
    return rows
