"""A fast rule-based tokenizer for English: one regular expression.

It follows the Penn Treebank: it splits contractions (``do n't``) and possessives (``Ann 's``),
separates punctuation, and keeps ``well-known`` as one token. Unlike the Treebank it never rewrites
a character, so each token is a slice of the text. Written by hand because it needs no dependency,
keeps offsets, and must not change between versions: a model is tied to its tokenizer.
"""

from __future__ import annotations

import re

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LETTER = rf"(?:[^\W{_CJK}][\u0300-\u036f]*)"  # with its combining accents
_APOSTROPHE = r"['’]"
_ENDINGS = rf"(?:[sSmMdD]|ll|LL|re|RE|ve|VE|t|T)(?!{_LETTER})"
_EMOJI = r"[\u231a-\u23ff\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]*"
ABBREVIATIONS = (
    r"Mr|Mrs|Ms|Dr|Prof|Rev|Hon|St|Mt|Jr|Sr|Gen|Sen|Rep|Gov|Lt|Col|Sgt|Capt|Maj|Adm|Pres|"
    r"Inc|Ltd|Corp|Co|Bros|Univ|Dept|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|"
    r"Fig|Vol|Ave|Blvd|vs|etc|cf|ca|approx|al"
)

_TOKEN = re.compile(
    "|".join(
        [
            r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'’]",  # addresses
            r"[A-Za-z0-9._%+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
            r"[@#]\w+",
            rf"\b(?:{ABBREVIATIONS})\.(?=\W|$)",  # abbreviations keep their full stop
            r"\bNo\.(?=\s?\d)",
            r"(?<!\w)(?:[A-Za-z]\.){2,}",
            r"\b[A-HJ-Z]\.(?=\s+[A-Z])",  # initials, but not the word I
            r"(?:(?<!\S)[-+])?\d+(?:[.,:/]\d+)+(?:st|nd|rd|th|s)?(?!\w)",  # 1,000.5  3:45  1/2
            r"(?<!\S)[-+]\d+(?!\w)",
            rf"{_LETTER}+?(?=n{_APOSTROPHE}[tT](?!{_LETTER}))",  # do|n't
            rf"n{_APOSTROPHE}[tT](?!{_LETTER})",
            rf"\b[Cc]an(?=not(?!{_LETTER}))",
            rf"{_APOSTROPHE}{_ENDINGS}",
            # words, with hyphens, inner apostrophes (O'Neill), & (AT&T) and inner dots
            rf"{_LETTER}+(?:(?:[-‐&.]|{_APOSTROPHE}(?!{_ENDINGS})){_LETTER}+)*",
            rf"[{_CJK}]",
            r"\.{2,}|-{2,}|`{2}|'{2}",
            r"[:;]-?[)(DP](?!\w)",  # :-)
            r"[\U0001f1e6-\U0001f1ff]{2}",  # flags
            rf"{_EMOJI}(?:\u200d{_EMOJI})*",
            r"\S",
        ]
    )
)


def english_spans(text: str) -> list[tuple[int, int]]:
    """Return the character offsets (start, end) of each token of an English text."""
    return [match.span() for match in _TOKEN.finditer(text)]
