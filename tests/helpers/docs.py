"""Code blocks of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(name, language):
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
