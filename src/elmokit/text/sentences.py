"""Where sentences end in running text, by rules for Western and East Asian punctuation."""

from __future__ import annotations

import re

from elmokit.text.english import ABBREVIATIONS

# what may end a sentence, with closing quotes and brackets, and what must follow it
_END = re.compile(
    r"[。！？]+[”’」』）\])]*"  # these end it always
    r"|(?:[.!?]+|…)[\"'”’)\]]*(?=\s+[\"'“‘(\[¿¡]*[^\W_a-zß-öø-ÿ])"  # before a capital or a digit
)
_LAST_WORD = re.compile(r"(\w+(?:\.\w+)*)\.$")
_ABBREVIATION = re.compile(rf"(?:{ABBREVIATIONS}|No|pp|[eE]\.g|i\.e|[A-Za-z](?:\.[A-Za-z])*)$")
_LONGEST_WORD = 24  # characters looked back for an abbreviation


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph, without white space around them; none is empty."""
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
    # "I." is the end of a sentence more often than an initial
    return word is not None and word[1] != "I" and _ABBREVIATION.match(word[1]) is not None
