"""Texts of several sentences, cut if they are too long."""

from __future__ import annotations

from elmokit.tasks.readers.examples import Words
from elmokit.tasks.word_input import Sentences
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import Tokenizer, tokenize_one


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
