"""Nearest neighbours of a word in context, among the tokens of an indexed text.

Table 4 of the paper shows them for "play": without context its neighbours mix all its senses, in a
sentence they share one sense.

    index = Index.open("my-index")  # written by build_index
    found = neighbours(index, Elmo.load(), "He made a great play.", "play", k=5)
    found.occurrences, found.words
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from elmokit.analysis.index.index_config import PROBE
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.phrases import Place, notes_on_longer, require_phrase
from elmokit.analysis.reports.report import Report, Reported
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError
from elmokit.io.notebook import BriefRepr

_SAME_MODEL = 0.99  # cosine similarity to the vectors of the index; int8 gives 0.999
_SHOWN = 12  # tokens on either side


@dataclass(frozen=True)
class Neighbour:
    """A token of the indexed text."""

    cosine: float
    """Cosine similarity to the queried word."""
    tokens: list[str]
    """Its sentence."""
    position: int
    """Its position in the sentence, from 0."""
    sentence: int
    """The number of the sentence in the text, from 0."""

    @property
    def word(self) -> str:
        """The token."""
        return self.tokens[self.position]

    def marked(self, around: int = _SHOWN) -> str:
        """Return the sentence with the token in brackets, shortened if it is long."""
        return mark(self.tokens, self.position, around)


@dataclass(frozen=True, repr=False)
class Neighbours(BriefRepr, Reported):
    """Nearest neighbours of a word in a sentence."""

    tokens: list[str]
    """The sentence."""
    position: int
    """The word's position in it, from 0."""
    occurrences: list[Neighbour]
    """The nearest tokens of the text, by the layer of the index."""
    words: list[tuple[str, float]]
    """The nearest words of the text by their static vectors, with their cosine similarities."""
    notes: list[str] = field(default_factory=list)
    """Says so if the word is part of a longer token."""
    layer: int = 0
    """The layer of the index."""
    text_tokens: int = 0
    """Tokens of the indexed text."""

    def report(self) -> Report:
        """Return the neighbours side by side, and as dots."""
        from elmokit.analysis.reports.neighbours_report import neighbours_report

        return neighbours_report(self)


def neighbours(
    index: Index,
    elmo: Elmo,
    sentence: Text,
    word: str,
    k: int = 10,
    *,
    which: int = 1,
    same_word: bool = False,
    brute: bool = False,
) -> Neighbours:
    """Find the occurrences of a text nearest to a word in a sentence, and its nearest static words.

    If the text contains the sentence itself, that is skipped; of repeated sentences, only one
    counts.

    Args:
        index: The index of the text.
        elmo: The model the index was built with.
        sentence: A sentence.
        word: A word of the sentence, one token.
        k: Number of occurrences, and of words.
        which: Which occurrence of the word in the sentence, from 1.
        same_word: Search all occurrences of the word itself, and no others.
        brute: Search exhaustively instead of by the graph; exact, but slower.
    """
    if k < 1:
        raise InputError(f"k= must be at least 1, not {k}")
    tokens = elmo.tokenize(sentence)
    place = _place(tokens, elmo.tokenize(word), which)
    found = neighbours_at(index, elmo, tokens, place.start, k, same_word=same_word, brute=brute)
    return replace(found, notes=notes_on_longer(word, [place.longer]))


def neighbours_at(
    index: Index,
    elmo: Elmo,
    tokens: list[str],
    position: int,
    k: int = 10,
    *,
    same_word: bool = False,
    brute: bool = False,
) -> Neighbours:
    """Find the neighbours of one token of a sentence; see :func:`neighbours`.

    Args:
        index: The index of the text.
        elmo: The model the index was built with.
        tokens: The sentence.
        position: The token, from 0.
        k: Number of occurrences, and of words.
        same_word: As for :func:`neighbours`.
        brute: As for :func:`neighbours`.
    """
    config = index.config
    if config.dim != elmo.dim or config.layer >= elmo.n_layers:
        raise InputError(
            f"{index.folder} has {config.dim} dimensions of layer {config.layer}, but this model "
            f"has {elmo.dim} dimensions and layers up to {elmo.n_layers - 1}; {_use_model(index)}"
        )
    layers, probe = elmo.encode([tokens, PROBE], [0, config.layer], progress=False)
    if (unit(probe[1]) * index.probe).sum(-1).min() < _SAME_MODEL:
        raise InputError(f"{index.folder} was built with another model; {_use_model(index)}")
    vector = unit(layers[1, position])
    found = index.search(
        vector, k, exclude=tokens, word=tokens[position] if same_word else None, brute=brute
    )
    own = unit(layers[0, position, : config.word_dim])
    words = index.words_like(own, k, exclude=tokens[position])
    nearest = [_neighbour(index, *one) for one in found]
    return Neighbours(tokens, position, nearest, words, [], config.layer, config.tokens)


def mark(tokens: Sequence[str], position: int, around: int = _SHOWN) -> str:
    """Put one token of a sentence in brackets, and cut to ``around`` tokens on either side."""
    first, last = max(0, position - around), position + around + 1
    shown = [*tokens[first:position], f"[{tokens[position]}]", *tokens[position + 1 : last]]
    return " ".join(["…"] * (first > 0) + shown + ["…"] * (last < len(tokens)))


def _place(tokens: Sequence[str], word: Sequence[str], which: int) -> Place:
    """Return the place of the word in the sentence, a single token."""
    places = require_phrase(tokens, word)
    parts = tokens[places[0].tokens]
    if len(parts) > 1:
        raise InputError(
            f"{' '.join(parts)!r} is {len(parts)} tokens; an index holds single tokens, such as "
            f"{max(parts, key=len)!r}"
        )
    if not 1 <= which <= len(places):
        raise InputError(
            f"{word[0]!r} occurs {len(places)} times in the sentence; which= must be from 1 to "
            f"{len(places)}, not {which}"
        )
    return places[which - 1]


def _neighbour(index: Index, row: int, cosine: float) -> Neighbour:
    sentence, position = index.place(row)
    return Neighbour(cosine, index.sentence(sentence), position, sentence)


def _use_model(index: Index) -> str:
    return f"use the model of the index, {index.config.model or 'which was never saved'}"
