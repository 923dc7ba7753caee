"""A warning for text in a script that a model hardly knows: Chinese characters, Latin letters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence

from elmokit.errors import LanguageWarning
from elmokit.text.scripts import HAN

_FIRST = 8  # sentences of a call that are looked at
_SAMPLE = 1000  # of a model's words, of which the share in Chinese characters is estimated
_KNOWS_CHINESE, _IS_CHINESE = 0.01, 0.5  # shares: an English model has 0.3%, a Chinese one 90%
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_LEAST_WORDS = 4  # in Latin letters, in a sentence without Chinese characters


class LanguageCheck:
    """Warns once if a model is given sentences in a script that it hardly knows.

    Args:
        words: Words that the model knows; without any, nothing can be said.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        sample = words[:: 1 + len(words) // _SAMPLE]
        share = sum(map(_is_chinese, sample)) / max(1, len(sample))
        self._look_for_chinese = bool(words) and share < _KNOWS_CHINESE
        self._look_for_latin = share > _IS_CHINESE

    def watch(self, sentences: Iterable[list[str]]) -> Iterator[list[str]]:
        """Yield sentences of tokens unchanged, and look at the first ones."""
        for number, tokens in enumerate(sentences):
            if number < _FIRST:
                if self._look_for_chinese and _reads_as_chinese("".join(tokens)):
                    self._look_for_chinese = False
                    self._warn("in Chinese characters", _is_chinese, "zh")
                elif self._look_for_latin and _reads_as_latin(" ".join(tokens)):
                    self._look_for_latin = False
                    self._warn("in Latin letters", _is_latin, "en")
            yield tokens

    def _warn(self, written: str, knows: Callable[[str], bool], model: str) -> None:
        n, total = sum(map(knows, self._words)), len(self._words)
        warnings.warn(
            f"the text is {written}, but {f'only {n:,}' if n else 'none'} of the {total:,} words "
            f"this model knows {'is' if n == 1 else 'are'}, so its vectors and probabilities mean "
            f"little here; use a model of the language, such as the bundled {model}, or a task "
            "model trained with it",
            LanguageWarning,
            stacklevel=5,
        )


def _is_chinese(word: str) -> bool:
    return HAN.search(word) is not None


def _is_latin(word: str) -> bool:
    return word[:1] != "<" and _LATIN_WORD.search(word) is not None  # <UNK> is not a word


def _reads_as_chinese(text: str) -> bool:
    """Whether half of the letters, and at least two, are Chinese characters."""
    if text.isascii():  # nearly all text that needs no warning, decided quickly
        return False
    n_han = len(HAN.findall(text))
    return n_han >= 2 and 2 * n_han >= sum(map(str.isalpha, text))


def _reads_as_latin(text: str) -> bool:
    """Whether a text has several words in Latin letters, and no Chinese character."""
    return len(_LATIN_WORD.findall(text)) >= _LEAST_WORDS and HAN.search(text) is None
