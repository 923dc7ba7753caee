"""Cosine similarity of a word, or of whole sentences, in two contexts, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.phrases import Place, require_phrase
from elmokit.analysis.reports.report import Report, Reported, fixed, numbered_layers
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import BriefRepr, Shown

Floats = npt.NDArray[np.floating[Any]]

_MOST_PAIRS = 250_000  # token pairs in one picture
_MOST_OCCURRENCES = 20  # of a word in each sentence; every pair of them is a row of a table


@dataclass(frozen=True)
class WordPair:
    """One occurrence of a word in the first sentence and one in the second."""

    first: int
    """Position of its first token in the first sentence."""
    second: int
    """Position of its first token in the second sentence."""
    cosines: Floats
    """One per layer (L + 1,), the token layer first."""
    longer: tuple[str, str] = ("", "")
    """The tokens that contain the word in either sentence, where they are longer than the word."""


class WordPairs(list[WordPair], Reported):
    """Pairs of a word's occurrences, in the order of the sentences.

    Args:
        pairs: The pairs.
        counts: How often the word occurs in each sentence.
        word: The word.
        sentences: The two sentences.
        layer_names: Names (L + 1) of the layers.
    """

    def __init__(
        self,
        pairs: Iterable[WordPair],
        counts: Sequence[int],
        word: str = "",
        sentences: Sequence[str] = (),
        layer_names: Sequence[str] = (),
    ) -> None:
        super().__init__(pairs)
        self.counts, self.word = list(counts), word
        self.sentences, self.layer_names = list(sentences), list(layer_names)

    def report(self) -> Report:
        """Return a row for each pair, and bars."""
        from elmokit.analysis.reports.similarity_report import word_report

        layers = numbered_layers(self.layer_names, len(self[0].cosines) if self else 0)
        return word_report(self.word, self, layers, self.sentences)

    @property
    def left_out(self) -> str:
        """Say which occurrences were not compared; empty if all were."""
        most = _MOST_OCCURRENCES
        if max(self.counts) <= most:
            return ""
        first, second = self.counts
        return (
            f"the word occurs {first:,} times in the first sentence and {second:,} times in the "
            f"second; only the first {most} of each are compared"
        )


@dataclass(frozen=True, repr=False)
class TokenPairs(BriefRepr, Reported):
    """Cosine similarity of every token of one sentence to every token of another."""

    first: list[str]
    """Tokens (T) of the first sentence."""
    second: list[str]
    """Tokens (U) of the second."""
    cosines: Floats
    """(L + 1, T, U), the token layer first."""
    sentences: Floats
    """Cosine similarity (L + 1,) of the sentences' mean vectors."""
    layer_names: list[str] = field(default_factory=list, repr=False)

    def report(self) -> Report:
        """Return a row for each pair of tokens, and a heat map for each layer."""
        from elmokit.analysis.reports.similarity_report import heat_map_report

        return heat_map_report(self, self._layers)

    @property
    def _layers(self) -> list[str]:
        return numbered_layers(self.layer_names, len(self.cosines))

    def _shown(self) -> Shown:
        report = self.report()  # has more rows than anyone reads; the picture shows them
        wholes = [["whole sentences", *map(fixed, self.sentences.tolist())]]
        return Shown(html_table(Table(wholes, ["", *self._layers], report.title)), report.picture())


def cosine(a: Floats, b: Floats) -> Floats:
    """Cosine similarity (…) of vectors (…, D); 0 for a zero vector."""
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(-1) / np.where(norms == 0, 1, norms)


def word_similarity(elmo: Elmo, first: Text, second: Text, word: str) -> WordPairs:
    """Compare every pair of a word's occurrences, one in each sentence.

    Of more than 20 occurrences in a sentence, the first 20 are compared.

    Args:
        elmo: The model.
        first: A sentence.
        second: Another sentence.
        word: A word or phrase that occurs in both, regardless of case.
    """
    sentences = _two(elmo, first, second)
    phrase = elmo.tokenize(word)
    places = [require_phrase(tokens, phrase) for tokens in sentences]
    vectors = elmo.encode(sentences, layers="all")

    def at(which: int, place: Place) -> Floats:
        return vectors[which][:, place.tokens].mean(1)

    counts = [len(some) for some in places]
    places = [some[:_MOST_OCCURRENCES] for some in places]
    pairs = (
        WordPair(a.start, b.start, cosine(at(0, a), at(1, b)), (a.longer, b.longer))
        for a in places[0]
        for b in places[1]
    )
    texts = [text if isinstance(text, str) else " ".join(text) for text in (first, second)]
    return WordPairs(pairs, counts, word, texts, elmo.layer_names)


def sentence_similarity(elmo: Elmo, first: Text, second: Text) -> Floats:
    """Cosine similarity of two sentences' mean vectors, one per layer (L + 1,)."""
    a, b = elmo.encode_sentences(_two(elmo, first, second), layers="all")
    return cosine(a, b)


def token_pairs(elmo: Elmo, first: Text, second: Text) -> TokenPairs:
    """Compare every token of one sentence to every token of another, and the whole sentences."""
    a, b = _two(elmo, first, second)
    if len(a) * len(b) > _MOST_PAIRS:
        raise InputError(
            f"sentences of {len(a):,} and {len(b):,} tokens make too many pairs for a picture; "
            f"expected at most {_MOST_PAIRS:,} pairs"
        )
    x, y = elmo.encode([a, b], layers="all")
    cosines, whole = unit(x) @ unit(y).swapaxes(1, 2), cosine(x.mean(1), y.mean(1))
    return TokenPairs(a, b, cosines, whole, elmo.layer_names)


def unit(vectors: Floats) -> Floats:
    """Scale vectors (…, D) to length 1; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def _two(elmo: Elmo, first: Text, second: Text) -> list[list[str]]:
    """Tokenise two sentences; neither may be empty."""
    sentences = [elmo.tokenize(first), elmo.tokenize(second)]
    for which, tokens in zip(("first", "second"), sentences, strict=True):
        if not tokens:
            raise InputError(f"the {which} sentence has no tokens; expected two sentences")
    return sentences
