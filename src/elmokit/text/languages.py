"""A warning for Chinese text on a model that has hardly read any."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence

from elmokit.errors import LanguageWarning
from elmokit.text.scripts import HAN

_FIRST = 8  # sentences of a call that are looked at
_LEAST_SHARE = 0.01  # of a model's words; an English one has 0.3%, a Chinese one nearly all


class LanguageCheck:
    """Warns once if sentences in Chinese characters are given to a model that knows none.

    Args:
        words: Words that the model knows; without any, nothing can be said.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._decided = not words

    def watch(self, sentences: Iterable[list[str]]) -> Iterator[list[str]]:
        """Yield sentences of tokens unchanged, and look at the first ones."""
        for number, tokens in enumerate(sentences):
            if number < _FIRST and not self._decided:
                self._look("".join(tokens))
            yield tokens

    def _look(self, text: str) -> None:
        if text.isascii():  # nearly all text that needs no warning, decided quickly
            return
        n_han = len(HAN.findall(text))
        if n_han < 2 or 2 * n_han < sum(map(str.isalpha, text)):
            return
        self._decided = True
        n = sum(HAN.search(word) is not None for word in self._words)
        if n < _LEAST_SHARE * len(self._words):
            warnings.warn(
                f"the text is in Chinese characters, but {f'only {n}' if n else 'none'} of the "
                f"{len(self._words):,} words this model knows {'has' if n == 1 else 'have'} any, "
                "so its vectors and probabilities mean little here; load a model of the language, "
                "or train one (elmokit pretrain)",
                LanguageWarning,
                stacklevel=5,
            )
