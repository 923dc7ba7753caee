"""How alike a word, or a whole sentence, is in two contexts, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.phrases import require_phrase
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError

Floats = npt.NDArray[np.floating[Any]]

_MOST_PAIRS = 250_000  # of tokens in one picture


@dataclass(frozen=True)
class WordPair:
    """One occurrence of a word in the first sentence and one in the second."""

    first: int
    """Number of its first token in the first sentence."""
    second: int
    """Number of its first token in the second sentence."""
    cosines: Floats
    """One a layer (L + 1,), the token layer first."""


@dataclass(frozen=True)
class TokenPairs:
    """Every token of one sentence beside every token of another."""

    first: list[str]
    """Tokens (T) of the first sentence."""
    second: list[str]
    """Tokens (U) of the second."""
    cosines: Floats
    """(L + 1, T, U), the token layer first."""
    sentences: Floats
    """(L + 1,), of the sentences' mean vectors."""


def cosine(a: Floats, b: Floats) -> Floats:
    """Cosine similarity (…) of vectors (…, D); 0 where one of them is zero."""
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(-1) / np.where(norms == 0, 1, norms)


def word_similarity(elmo: Elmo, first: Text, second: Text, word: str) -> list[WordPair]:
    """Every pair of a word's occurrences, one in each sentence.

    Args:
        elmo: The model.
        first: A sentence.
        second: Another.
        word: The word, or a phrase, which must occur in both; upper and lower case count as the
            same.
    """
    sentences = _two(elmo, first, second)
    phrase = elmo.tokenize(word)
    places = [require_phrase(tokens, phrase) for tokens in sentences]
    vectors = elmo.encode(sentences, layers="all")

    def at(which: int, position: int) -> Floats:
        return vectors[which][:, position : position + len(phrase)].mean(1)

    return [WordPair(i, j, cosine(at(0, i), at(1, j))) for i in places[0] for j in places[1]]


def sentence_similarity(elmo: Elmo, first: Text, second: Text) -> Floats:
    """Cosine of the two sentences' mean vectors, one a layer (L + 1,)."""
    a, b = elmo.encode_sentences(_two(elmo, first, second), layers="all")
    return cosine(a, b)


def token_pairs(elmo: Elmo, first: Text, second: Text) -> TokenPairs:
    """How alike every pair of tokens is, one of each sentence, and the whole sentences."""
    a, b = _two(elmo, first, second)
    if len(a) * len(b) > _MOST_PAIRS:
        raise InputError(
            f"sentences of {len(a):,} and {len(b):,} tokens make too many pairs for a picture; "
            f"give shorter ones, {_MOST_PAIRS:,} pairs at most"
        )
    x, y = elmo.encode([a, b], layers="all")
    return TokenPairs(a, b, unit(x) @ unit(y).swapaxes(1, 2), cosine(x.mean(1), y.mean(1)))


def unit(vectors: Floats) -> Floats:
    """Vectors (…, D) at length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def _two(elmo: Elmo, first: Text, second: Text) -> list[list[str]]:
    """The tokens of two sentences; an error where one has none."""
    sentences = [elmo.tokenize(first), elmo.tokenize(second)]
    for which, tokens in zip(("first", "second"), sentences, strict=True):
        if not tokens:
            raise InputError(f"the {which} sentence has no token; give two sentences")
    return sentences
