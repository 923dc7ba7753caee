"""The vocabulary of a softmax, in the order of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from elmokit.arguments import strings
from elmokit.errors import FormatError, shown
from elmokit.text.chinese import simplified


class Vocabulary:
    """Words and their ids. Published files start with the two sentence marks and <UNK>.

    Args:
        words: Distinct words, most frequent first.
        script: "simplified" finds a word in traditional Chinese characters under its simplified
            form; see :class:`~elmokit.config.ModelConfig`.
    """

    begin, end, unknown = "<S>", "</S>", "<UNK>"
    marks = (begin, end, unknown)
    """Entries that are not words."""

    def __init__(self, words: Iterable[str], script: str = "any") -> None:
        self.words = tuple(strings(words, "words"))
        self._id = {word: i for i, word in enumerate(self.words)}
        self._spelling = simplified if script == "simplified" else str
        if len(self._id) < len(self.words):
            counts = Counter(self.words)
            twice = [word for word, n in counts.items() if n > 1]
            raise FormatError(
                f"the vocabulary has {len(twice)} words more than once, such as "
                f"{', '.join(map(shown, twice[:3]))}; remove the duplicates"
            )
        if missing := [word for word in self.marks if word not in self._id]:
            raise FormatError(
                f"the vocabulary has no line {' or '.join(missing)}; it must have one word per "
                f"line, among them {', '.join(self.marks)}"
            )

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return self._spelling(word) in self._id

    def id(self, word: str) -> int:
        """Return the id of a word, or that of <UNK>."""
        return self._id.get(self._spelling(word), self._id[self.unknown])

    def ids(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the ids (T,) of words."""
        return np.fromiter(map(self.id, strings(words, "words")), np.int64)
