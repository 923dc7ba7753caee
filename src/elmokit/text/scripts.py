"""Characters of the scripts that need care: those without spaces, and Chinese characters."""

from __future__ import annotations

import re

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

HAN = re.compile(f"[{_HAN}]")
"""A Chinese character."""
UNSPACED = re.compile(f"[{_HAN}\u3041-\u30ff\uff66-\uff9f\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
"""A character of a script that puts no space between words: Chinese characters, Japanese syllables,
Thai, Lao, Tibetan, Burmese and Khmer."""
