"""Alphabets: words as rows of character ids, as each family of models expects them.

An alphabet converts words into ids (W, C): start marker, characters, end marker, padding. All ids
are shifted by one, because 0 stands for a padded token. If a model also has embeddings of whole
words, a last column contains the id of the word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from elmokit.config import TokenEncoderConfig
from elmokit.errors import FormatError
from elmokit.text.chinese import simplified

Ids = npt.NDArray[np.int32]


class Alphabet(Protocol):
    """Converts words into character ids."""

    begin: str
    """Token that marks the start of a sentence."""
    end: str
    """Token that marks the end of a sentence."""

    def encode(self, words: Sequence[str], columns: int | None = None) -> Ids:
        """Return the ids (W, C) of words.

        Args:
            words: W words.
            columns: Number of columns C. None chooses the fewest that do not change the output of
                the CNN: the longest word, its two markers, and one window of padding.
        """
        ...

    def lengths(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of characters (W,) of words, without the two markers."""
        ...


class Utf8Alphabet:
    """UTF-8 bytes, as in AllenNLP and bilm-tf."""

    begin, end = "<S>", "</S>"
    _SENTENCE_START, _SENTENCE_END, _WORD_START, _WORD_END, _PADDING = 257, 258, 259, 260, 261

    def __init__(self, config: TokenEncoderConfig) -> None:
        if config.word_dim:
            raise FormatError("a model with word_dim above 0 needs alphabet=codepoints, not utf8")
        self._max = config.max_characters
        self._widest = config.widest

    def encode(self, words: Sequence[str], columns: int | None = None) -> Ids:
        """Return the ids (W, C) of words; see :class:`Alphabet`."""
        # "ignore" because a lone surrogate has no UTF-8 form; the originals do the same
        cut = [word.encode("utf-8", "ignore")[: self._max - 2] for word in words]
        longest = max(map(len, cut), default=0)
        columns = columns or min(self._max, longest + 2 + self._widest)
        # a sentence mark is a word of one character whose id is not that of a byte
        marks = {self.begin: self._SENTENCE_START, self.end: self._SENTENCE_END}
        marked = {row: marks[word] for row, word in enumerate(words) if word in marks}
        for row in marked:
            cut[row] = b"?"
        lengths = np.fromiter(map(len, cut), np.int64, len(cut))[:, None]
        ids = np.full((len(words), columns), self._PADDING, np.int32)
        ids[:, 0] = self._WORD_START
        place = np.arange(columns)
        inside = (place > 0) & (place <= lengths)
        ids[inside] = np.frombuffer(b"".join(cut), np.uint8)
        ids[inside] += 1
        ids[place == lengths + 1] = self._WORD_END
        for row, mark in marked.items():
            ids[row, 1] = mark
        return ids

    def lengths(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of bytes (W,) of words; see :class:`Alphabet`."""
        return np.fromiter((len(w.encode("utf-8", "ignore")) for w in words), np.int64, len(words))


class CodepointAlphabet:
    """Dictionaries of characters and whole words, as in ELMoForManyLangs.

    Args:
        config: Sizes of the token encoder.
        characters: Characters in the order of their embeddings.
        words: Words in the order of their embeddings; empty if the model embeds characters only.
    """

    begin, end = "<bos>", "<eos>"

    def __init__(
        self, config: TokenEncoderConfig, characters: Sequence[str], words: Sequence[str] = ()
    ) -> None:
        self.characters, self.words = tuple(characters), tuple(words)
        self._max = config.max_characters
        self._widest = config.widest
        self._character_id = {c: i + 1 for i, c in enumerate(self.characters)}
        self._word_id = {w: i + 1 for i, w in enumerate(self.words)}
        for name, needed, known in (
            ("characters", ("<bow>", "<eow>", "<oov>", "<pad>"), self._character_id),
            ("words", ("<oov>",) if self.words else (), self._word_id),
        ):
            if missing := [item for item in needed if item not in known]:
                raise FormatError(
                    f"the model's list of {name} has no {' or '.join(missing)}; use the list that "
                    "came with its weights"
                )
        # The original swaps the two markers, and its models were trained that way.
        self._word_start = self._character_id["<eow>"]
        self._word_end = self._character_id["<bow>"]

    def encode(self, words: Sequence[str], columns: int | None = None) -> Ids:
        """Return the ids (W, C), or (W, C + 1) with word ids; see :class:`Alphabet`."""
        cut = [word[: self._max - 2] for word in words]
        longest = max(map(len, cut), default=0)
        columns = columns or min(self._max, longest + 2 + self._widest)
        width = columns + bool(self.words)
        ids = np.full((len(words), width), self._character_id["<pad>"], np.int32)
        unknown = self._character_id["<oov>"]
        for row, (word, characters) in enumerate(zip(words, cut, strict=True)):
            of_word = [word] if word in (self.begin, self.end) else characters
            found = [self._character_id.get(c, unknown) for c in of_word]
            ids[row, : len(found) + 2] = [self._word_start, *found, self._word_end]
        if self.words:
            ids[:, -1] = [self._word_id.get(word, self._word_id["<oov>"]) for word in cut]
        return ids

    def lengths(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of characters (W,) of words; see :class:`Alphabet`."""
        return np.fromiter(map(len, words), np.int64, len(words))


class SimplifiedAlphabet:
    """Another alphabet that reads traditional Chinese characters as simplified ones.

    Args:
        inner: The alphabet of the simplified characters.
    """

    def __init__(self, inner: Alphabet) -> None:
        self._inner = inner
        self.begin, self.end = inner.begin, inner.end

    def encode(self, words: Sequence[str], columns: int | None = None) -> Ids:
        """Return the ids (W, C) of words; see :class:`Alphabet`."""
        return self._inner.encode([simplified(word) for word in words], columns)

    def lengths(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of characters (W,) of words; see :class:`Alphabet`."""
        return self._inner.lengths([simplified(word) for word in words])
