"""Sentence splitting by rules for Western and East Asian punctuation.

Written by hand for the same reasons as the tokenizer in english.py.
"""

from __future__ import annotations

import re

from elmokit.arguments import instance
from elmokit.text.english import ABBREVIATIONS

# the end of a sentence: punctuation, closing quotes and brackets, and what must follow
_END = re.compile(
    r"[。！？]+[”’」』）\])]*"  # always end a sentence
    # If a capital or digit follows. Only the first of several marks can start a match: trying the
    # others would take quadratic time.
    r"|(?:(?<![.!?])[.!?]+|…)[\"'”’)\]]*(?=\s+[\"'“‘(\[¿¡]*[^\W_a-zß-öø-ÿ])"
)
_LAST_WORD = re.compile(r"(\w+(?:\.\w+)*)\.$")
_ABBREVIATION = re.compile(rf"(?:{ABBREVIATIONS}|No|pp|[eE]\.g|i\.e|[A-Za-z](?:\.[A-Za-z])*)$")
_LONGEST_WORD = 24  # characters to look back for an abbreviation


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences, stripped of white space; empty ones are dropped."""
    instance(text, "text", str, "a string")
    sentences, start = [], 0
    for match in _END.finditer(text):
        if match[0] == "." and _ends_in_abbreviation(text, match.end()):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_in_abbreviation(text: str, end: int) -> bool:
    word = _LAST_WORD.search(text[max(0, end - _LONGEST_WORD) : end])
    # "I." ends a sentence more often than it is an initial
    return word is not None and word[1] != "I" and _ABBREVIATION.match(word[1]) is not None
