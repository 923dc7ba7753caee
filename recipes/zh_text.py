r"""Make the text of recipes/zh.toml: simplified, with held-out documents set aside.

    pip install opencc
    python recipes/zh_text.py zhwiki.txt dialogues.txt common_voice.txt --out MIX \
        --repeat dialogues=6 common_voice=4

The files have one paragraph per line and a blank line between documents; in common_voice, every
line is a document. recipes/zh.toml names their sources and licences. The script
writes

    MIX/train/SOURCE.txt   text to train on, repeated as often as --repeat says
    MIX/valid/SOURCE.txt   held-out text: one article of Wikipedia in 500, and
    MIX/test/SOURCE.txt    as many again; of the other sources, one document in 200, in test only

OpenCC converts traditional characters to simplified ones. It looks at words, so it is slightly
better than the table of single characters that ElmoKit reads text with (elmokit/text/chinese.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import opencc

LONG, SINGLE_SENTENCES = "zhwiki", "common_voice"


def main() -> None:
    """Write the texts of all sources."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE.txt")
    parser.add_argument("--out", type=Path, required=True, metavar="MIX")
    parser.add_argument("--repeat", nargs="*", default=[], metavar="SOURCE=N")
    arguments = parser.parse_args()
    repeat = dict(item.split("=") for item in arguments.repeat)
    convert = opencc.OpenCC("t2s").convert
    for path in arguments.sources:
        parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
        for number, document in enumerate(documents(path), 1):
            simple = convert(document)
            parts[part_of(path.stem, number, simple)].append(simple)
        parts["train"] *= int(repeat.get(path.stem, 1))
        for part, texts in parts.items():
            if texts:
                target = arguments.out / part / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                between = "\n" if path.stem == SINGLE_SENTENCES else "\n\n"
                target.write_text(between.join(texts) + "\n", encoding="utf-8")
        print(path.stem, {part: len(texts) for part, texts in parts.items()}, flush=True)


def documents(path: Path) -> Iterator[str]:
    """Yield the documents of a file."""
    text = path.read_text(encoding="utf-8")
    between = "\n" if path.stem == SINGLE_SENTENCES else "\n\n"
    return (document for document in text.split(between) if document.strip())


def part_of(source: str, number: int, document: str) -> str:
    """Return the part that a document belongs to."""
    if source == LONG:
        return {0: "test", 250: "valid"}.get(number % 500, "train")
    held_out = int(sha256(document.encode()).hexdigest(), 16) % 200 == 0
    return "test" if held_out else "train"


if __name__ == "__main__":
    main()
