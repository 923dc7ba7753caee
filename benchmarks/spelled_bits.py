"""Bits per character of a text, with unknown words spelled out.

Used by zh.py. Perplexities of models with different tokens or vocabularies cannot be compared; this
number can. It counts the bits of all tokens and of the sentence mark, and for each token predicted
as <UNK> also the bits of its spelling. A model of words gets no credit for other ways to split the
same text into words, so its number is an upper bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from elmokit import Score

ALPHABET = 30_000  # characters


def spelled_bits(scores: Sequence[Score]) -> float:
    """Bits per character that is not white space, as the mean of both directions.

    Spelling uses character frequencies in unknown words, with an end after each word. Each half of
    the sentences is spelled with the frequencies of the other half.
    """
    middle = len(scores) // 2
    halves = scores[:middle], scores[middle:]
    unknown = [[word for score in half for word in unknown_words(score)] for half in halves]
    bits = sum(map(model_bits, scores))
    bits += spelling_bits(unknown[0], unknown[1]) + spelling_bits(unknown[1], unknown[0])
    characters = (c for score in scores for token in score.tokens for c in token)
    return bits / sum(not c.isspace() for c in characters)


def unknown_words(score: Score) -> list[str]:
    """The tokens that were predicted as <UNK>."""
    return [token for token, known in zip(score.tokens, score.known, strict=True) if not known]


def model_bits(score: Score) -> float:
    """Bits of a sentence's tokens and mark, as the mean of the model's directions."""
    nats = [-float(score.forward.sum(dtype=np.float64)) - score.end]
    if score.backward is not None:
        nats.append(-float(score.backward.sum(dtype=np.float64)) - score.start)
    return sum(nats) / len(nats) / math.log(2)


def spelling_bits(words: Sequence[str], others: Sequence[str]) -> float:
    """Bits to spell words with the character frequencies of others, add-one smoothed."""
    counts = Counter(c for word in others for c in word)
    total = sum(counts.values()) + len(others) + ALPHABET + 1  # the ends of words count too
    end = math.log2(total / (len(others) + 1))
    characters = Counter(c for word in words for c in word)
    return len(words) * end + sum(
        n * math.log2(total / (counts[c] + 1)) for c, n in characters.items()
    )
