"""Tokenizers by name.

A tokenizer returns character offsets; each token is a slice of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from elmokit.arguments import described, each, instance, strings, wrong
from elmokit.errors import ConfigError, InputError, shown
from elmokit.text.chinese import simplified
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

    def __post_init__(self) -> None:
        instance(self.name, "name", str, "a string")
        if not callable(self.spans):
            raise wrong("spans", "a function", self.spans)

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        instance(text, "text", str, "a string")
        spans = self.spans(text)
        try:
            return [text[start:end] for start, end in spans]
        except (TypeError, ValueError):
            raise InputError(
                f"the tokenizer {self.name} returned {described(spans)}; expected a list of pairs "
                "(start, end)"
            ) from None


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


_SURROGATE = re.compile("[\ud800-\udfff]")


def _chinese_spans(text: str) -> list[Span]:
    import rjieba  # reads its dictionary, which other models do not need

    text = _SURROGATE.sub("\ufffd", text)  # half of a character, which has no UTF-8 form
    text = simplified(text)  # the script of the dictionary; offsets stay the same
    return _align(text, rjieba.cut(text))


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
                f"there is no tokenizer {shown(tokenizer)}; choose one of {', '.join(TOKENIZERS)}"
            )
        return TOKENIZERS[tokenizer]
    function: Any = tokenizer
    if not callable(function):
        raise wrong("tokenizer", "a name, a Tokenizer or a function", tokenizer)
    name = getattr(function, "__name__", type(function).__name__)
    return Tokenizer(f"custom:{name}", partial(_custom_spans, function))


def tokenize_each(tokenizer: Tokenizer, texts: Any, name: str = "texts") -> Iterator[list[str]]:
    """Tokenize texts one by one. A wrong type of ``texts`` raises at once.

    Args:
        tokenizer: Splits the texts that are strings.
        texts: An iterable of strings or lists of tokens, which stay as they are.
        name: The caller's name for ``texts``.
    """
    items = enumerate(each(texts, name, "a list of texts"))
    return (tokenize_one(tokenizer, text, f"text {number}") for number, text in items)


def tokenize_all(tokenizer: Tokenizer, texts: Any, name: str = "texts") -> list[list[str]]:
    """Tokenize a list of texts; see :func:`tokenize_each`."""
    return list(tokenize_each(tokenizer, texts, name))


def tokenize_one(tokenizer: Tokenizer, text: Any, name: str = "text") -> list[str]:
    """Tokenize one text, a string or a list of tokens; see :func:`tokenize_each`."""
    if isinstance(text, str):
        return tokenizer(text)
    if text is None or _is_missing(text):  # as columns of tables have them
        raise InputError(
            f"{name} is missing ({shown(text)}); drop such rows, or fill them with empty strings"
        )
    return strings(text, name, "a string or a list of strings")


def _is_missing(text: Any) -> bool:
    """Whether a value is pandas' NA or not a number."""
    return type(text).__name__ == "NAType" or (isinstance(text, float) and text != text)


def _custom_spans(function: Callable[[str], Iterable[str]], text: str) -> list[Span]:
    return _align(text, function(text))


def _align(text: str, tokens: Any) -> list[Span]:
    """Return the offsets of consecutive tokens in the text; blank tokens are skipped."""
    spans, position = [], 0
    for token in each(tokens, "the result of the tokenizer", "a list of strings"):
        if not isinstance(token, str):
            raise InputError(f"the tokenizer returned {described(token)}; expected strings")
        if not token.strip():
            continue
        start = text.find(token, position)
        if start < 0:
            raise InputError(
                f"the tokenizer returned {shown(token)}, which does not occur in the text after "
                f"character {position}; pass text that is already tokenised as a list of tokens"
            )
        position = start + len(token)
        spans.append((start, position))
    return spans
