"""The vocabulary that a model predicts, and how the words of a corpus map to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import InputError
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.training_batches import FIRST_WORD
from elmokit.text.vocabulary import Vocabulary


def choose_words(corpus: Corpus, size: int, min_count: int) -> list[str]:
    """Return a vocabulary: the marks, then the most frequent words of a corpus."""
    n = int((corpus.counts >= min_count).sum())  # words are sorted by frequency
    words = [word for word in corpus.words[:n] if word not in Vocabulary.marks]
    if not words:
        raise InputError(
            f"no word of the text occurs {min_count:,} times, which leaves the vocabulary empty; "
            "choose a lower text.min_count, or use more text"
        )
    return [*Vocabulary.marks, *words[: size - len(Vocabulary.marks)]]


def choose_characters(corpus: Corpus, most: int) -> list[str]:
    """Return the most frequent characters of a corpus, at most so many, most frequent first."""
    counts: Counter[str] = Counter()
    for word, n in zip(corpus.words, corpus.counts.tolist(), strict=True):
        for character in word:
            counts[character] += n
    # ties by code point, not by the order of the text
    return sorted(counts, key=lambda c: (-counts[c], c))[: max(0, most)]


def code_words(corpus: Corpus, begin: str, end: str) -> list[str]:
    """Return the input words by code: the alphabet's marks, then the words of the corpus."""
    return [begin, end, *corpus.words]


def target_rows(corpus: Corpus, vocabulary: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return the row of the softmax for each code: the mark's, the word's, or that of <UNK>."""
    row = {word: i for i, word in enumerate(vocabulary)}
    unknown = row[Vocabulary.unknown]
    rows = np.full(FIRST_WORD + corpus.n_words, unknown, np.int32)
    rows[:FIRST_WORD] = row[Vocabulary.begin], row[Vocabulary.end]
    marks = set(Vocabulary.marks)
    rows[FIRST_WORD:] = [
        unknown if word in marks else row.get(word, unknown) for word in corpus.words
    ]
    return rows


def log_frequencies(corpus: Corpus, vocabulary: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the log relative frequency of each word (V,) among all predictions.

    Both directions predict every word. Each mark is predicted by one direction, once per sentence.
    A word that never occurs counts as occurring once.
    """
    counts = np.concatenate([np.full(FIRST_WORD, len(corpus) / 2), corpus.counts])
    rows = target_rows(corpus, vocabulary)
    totals = np.bincount(rows, counts, len(vocabulary)).clip(1)
    return np.log(totals / totals.sum()).astype(np.float32)


def first_biases(
    config: ModelConfig, corpus: Corpus, vocabulary: Sequence[str]
) -> dict[str, Tensor]:
    """Return initial biases of a softmax, which predict each word by its frequency.

    From zero, Adam needs thousands of steps to get there. Until then the LSTM output makes up for
    the biases, grows until it is clipped, and can get stuck there without gradients.
    """
    logs = torch.from_numpy(log_frequencies(corpus, vocabulary))
    if not config.softmax_cutoffs:
        return {SOFTMAX + "bias": logs}
    frequent, *clusters = logs.tensor_split(config.softmax_cutoffs)
    together = torch.stack([cluster.logsumexp(0) for cluster in clusters])
    return {SOFTMAX + "inner.head.bias": torch.cat([frequent, together])}
