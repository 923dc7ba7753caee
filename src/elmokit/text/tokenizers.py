"""Tokenizers by name.

A tokenizer returns character offsets; each token is a slice of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from elmokit.errors import ConfigError, InputError, MissingExtraError
from elmokit.text.english import english_spans

Span = tuple[int, int]
"""Offsets (start, end) of a token in its text."""

DEFAULT_TOKENIZER = "english"
"""Tokenizer of models that are trained without naming one."""


@dataclass(frozen=True)
class Tokenizer:
    """A named function that splits text into tokens.

    Args:
        name: Name stored in a model's config.
        spans: Function from a text to the offsets (start, end) of its tokens.
    """

    name: str
    spans: Callable[[str], list[Span]]

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return [text[start:end] for start, end in self.spans(text)]


_WORD = re.compile(r"\S+")
_CHARACTER = re.compile(r"\S")


def _whitespace_spans(text: str) -> list[Span]:
    return [match.span() for match in _WORD.finditer(text)]


_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")


def _split_english_spans(text: str) -> list[Span]:
    spans = []
    for start, end in english_spans(text):
        for hyphen in _HYPHEN.finditer(text, start, end):
            spans += [(start, hyphen.start()), hyphen.span()]
            start = hyphen.end()
        spans.append((start, end))
    return spans


def _character_spans(text: str) -> list[Span]:
    return [match.span() for match in _CHARACTER.finditer(text)]


def _chinese_spans(text: str) -> list[Span]:
    return _align(text, _chinese_segmenter()(text))


def _chinese_segmenter() -> Callable[[str], Iterable[str]]:
    """Return rjieba (Rust, fast) if installed, else jieba (Python)."""
    try:
        import rjieba

        return rjieba.cut
    except ImportError:
        pass
    try:
        import logging

        import jieba

        jieba.setLogLevel(logging.WARNING)
        return jieba.lcut
    except ImportError:
        raise MissingExtraError("rjieba", "chinese", "Chinese word segmentation") from None


TOKENIZERS: dict[str, Tokenizer] = {
    "whitespace": Tokenizer("whitespace", _whitespace_spans),
    "english": Tokenizer("english", english_spans),
    "english-hyphens": Tokenizer("english-hyphens", _split_english_spans),
    "characters": Tokenizer("characters", _character_spans),
    "chinese": Tokenizer("chinese", _chinese_spans),
}
"""The built-in tokenizers."""


def get_tokenizer(tokenizer: str | Tokenizer | Callable[[str], Iterable[str]]) -> Tokenizer:
    """Return a tokenizer.

    Args:
        tokenizer: A name in :data:`TOKENIZERS`, a :class:`Tokenizer`, or a function from a string
            to its tokens.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str):
        if tokenizer not in TOKENIZERS:
            raise ConfigError(
                f"there is no tokenizer {tokenizer!r}; choose one of {', '.join(TOKENIZERS)}"
            )
        return TOKENIZERS[tokenizer]
    function: Any = tokenizer
    name = getattr(function, "__name__", type(function).__name__)
    return Tokenizer(f"custom:{name}", partial(_custom_spans, function))


def tokenize_each(tokenizer: Tokenizer, texts: Iterable[Any]) -> Iterator[list[str]]:
    """Tokenize texts one by one.

    Args:
        tokenizer: Splits the texts that are strings.
        texts: Strings, or lists of tokens, which stay as they are.
    """
    for number, text in enumerate(texts):
        if isinstance(text, str):
            yield tokenizer(text)
            continue
        tokens = list(text) if isinstance(text, Iterable) else [text]
        # compare the types first, which is ten times as fast
        strings = set(map(type, tokens)) <= {str} or all(isinstance(t, str) for t in tokens)
        if not isinstance(text, Iterable) or not strings:
            wrong = next(t for t in tokens if not isinstance(t, str))
            raise InputError(
                f"text {number} contains {wrong!r} ({type(wrong).__name__}); expected str or a "
                "list of str"
            )
        yield tokens


def tokenize_all(tokenizer: Tokenizer, texts: Iterable[Any]) -> list[list[str]]:
    """Tokenize a list of texts; see :func:`tokenize_each`."""
    if isinstance(texts, str):
        raise InputError("expected a list of texts, not one string")
    return list(tokenize_each(tokenizer, texts))


def _custom_spans(function: Callable[[str], Iterable[str]], text: str) -> list[Span]:
    return _align(text, function(text))


def _align(text: str, tokens: Iterable[str]) -> list[Span]:
    """Return the offsets of consecutive tokens in the text; blank tokens are skipped."""
    spans, position = [], 0
    for token in tokens:
        if not token.strip():
            continue
        start = text.find(token, position)
        if start < 0:
            raise InputError(
                f"the tokenizer returned {token!r}, which does not occur in the text after "
                f"character {position}; pass text that is already tokenised as a list of tokens"
            )
        position = start + len(token)
        spans.append((start, position))
    return spans
