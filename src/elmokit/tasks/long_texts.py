"""Texts of several sentences: split, and cut if they are too long."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from elmokit.tasks.readers.examples import Words
from elmokit.tasks.word_input import Sentences
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import Tokenizer, tokenize_one

Item = TypeVar("Item")


def split_words(text: Any, tokenizer: Tokenizer) -> tuple[list[str], tuple[int, ...]]:
    """Return the words of a text, and how many each of its sentences has if there are several.

    A list of tokens is one sentence, and so is a text that is tokenised already.

    Args:
        text: The text, or its tokens.
        tokenizer: Splits sentences into words.
    """
    if not isinstance(text, str) or tokenizer.name == "whitespace":
        return tokenize_one(tokenizer, text), ()
    sentences = list(filter(None, map(tokenizer, split_sentences(text))))
    lengths = tuple(map(len, sentences)) if len(sentences) > 1 else ()
    return [word for words in sentences for word in words], lengths


def cut(items: Sequence[Item], lengths: Sequence[int]) -> list[Sequence[Item]]:
    """Cut items of consecutive sentences into those of each; without lengths, there is one."""
    return [items[start:end] for start, end in sentence_bounds(lengths)] if lengths else [items]


def sentence_bounds(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first word of each sentence and the one after its last."""
    return list(pairwise([0, *accumulate(lengths)]))


def text_sentences(text: Words, tokenizer: Tokenizer, most: int) -> Sentences:
    """Split a text into sentences of words; a list of tokens is one sentence.

    Args:
        text: The text, or its tokens.
        tokenizer: Splits sentences into words.
        most: Words that may stay; of a longer text, the first and the last ones do.
    """
    if not isinstance(text, str):
        return shortened([tokenize_one(tokenizer, text)], most)
    return shortened([tokenizer(sentence) for sentence in split_sentences(text)], most)


def shortened(sentences: Sentences, most: int) -> Sentences:
    """Leave out sentences in the middle until at most so many words remain."""
    if sum(map(len, sentences)) <= most:
        return sentences
    last = most // 2
    first = most - last
    start, end = [], []
    for sentence in sentences:
        if first <= 0:
            break
        start.append(sentence[:first])
        first -= len(sentence)
    for sentence in reversed(sentences):
        if last <= 0:
            break
        end.append(sentence[-last:])
        last -= len(sentence)
    return [*start, *reversed(end)]
