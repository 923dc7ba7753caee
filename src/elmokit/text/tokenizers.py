"""Ways to split a string into tokens, by name.

Every tokenizer gives character offsets, and every token is the slice of the text between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from elmokit.errors import ConfigError, InputError, MissingExtraError
from elmokit.text.english import english_spans

Span = tuple[int, int]


@dataclass(frozen=True)
class Tokenizer:
    """A named way to split text.

    Args:
        name: What a model's config records.
        spans: Text to the (start, end) offsets of its tokens.
    """

    name: str
    spans: Callable[[str], list[Span]]

    def __call__(self, text: str) -> list[str]:
        """The tokens of a text."""
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
    """Whichever of rjieba (Rust, fast) and jieba (Python) is installed, in that order."""
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
"""The tokenizers built in."""


def get_tokenizer(tokenizer: str | Tokenizer | Callable[[str], Iterable[str]]) -> Tokenizer:
    """A tokenizer by its name, or one made of any function from a string to its tokens."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str):
        if tokenizer not in TOKENIZERS:
            raise ConfigError(
                f"there is no tokenizer {tokenizer!r}; choose one of {', '.join(TOKENIZERS)}, "
                "or give a function from a string to its tokens"
            )
        return TOKENIZERS[tokenizer]
    function: Any = tokenizer
    name = getattr(function, "__name__", type(function).__name__)
    return Tokenizer(f"custom:{name}", partial(_custom_spans, function))


def tokenize_all(tokenizer: Tokenizer, texts: Iterable[Any]) -> list[list[str]]:
    """Tokens of texts that are strings, or already lists of tokens."""
    if isinstance(texts, str):
        raise InputError("give a list of texts, not one string")
    sentences = []
    for number, text in enumerate(texts):
        if isinstance(text, str):
            sentences.append(tokenizer(text))
            continue
        tokens = list(text) if isinstance(text, Iterable) else [text]
        # by their types first, as that is ten times as fast
        strings = set(map(type, tokens)) <= {str} or all(isinstance(t, str) for t in tokens)
        if not isinstance(text, Iterable) or not strings:
            wrong = next(t for t in tokens if not isinstance(t, str))
            raise InputError(
                f"text {number} is or holds {wrong!r}, a {type(wrong).__name__}; give strings, or "
                "lists of tokens that are strings"
            )
        sentences.append(tokens)
    return sentences


def _custom_spans(function: Callable[[str], Iterable[str]], text: str) -> list[Span]:
    return _align(text, function(text))


def _align(text: str, tokens: Iterable[str]) -> list[Span]:
    """Where the given tokens stand in the text, one after another; blank ones are passed over."""
    spans, position = [], 0
    for token in tokens:
        if not token.strip():
            continue
        start = text.find(token, position)
        if start < 0:
            raise InputError(
                f"the tokenizer gave {token!r}, which does not follow in the text after "
                f"character {position}; give already tokenised text as a list of tokens instead"
            )
        position = start + len(token)
        spans.append((start, position))
    return spans
