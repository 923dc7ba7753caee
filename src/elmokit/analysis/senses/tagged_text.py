"""Readers of texts tagged with WordNet senses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from elmokit.analysis.senses.wordnet import POS
from elmokit.errors import InputError
from elmokit.io.lines import read_bytes

# no part runs across a "<", so a damaged file takes linear time too
_WORD = re.compile(r"<(wf|punc)([^<>]*)>([^<]*)</(?:wf|punc)>|</s>")
_DEEPEST = 4  # folders above the tagged files
TREEBANK_ESCAPES = {
    "``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{",
    "-RCB-": "}",
}  # fmt: skip
"""Treebank escapes of quotation marks and brackets."""


@dataclass(frozen=True)
class Target:
    """A word or phrase with a known or unknown sense."""

    start: int
    """Position of its first token."""
    end: int
    """Position after its last token."""
    lemma: str
    pos: str
    """NOUN, VERB, ADJ or ADV."""
    id: str = ""
    keys: tuple[str, ...] = ()
    """Gold sense keys, such as bank%1:14:00::."""


@dataclass(frozen=True)
class TaggedSentence:
    """Tokens, some of them tagged."""

    tokens: list[str]
    targets: list[Target]


def read_semcor(folder: Path) -> Iterator[TaggedSentence]:
    """Read the sentences of SemCor 3.0, from every file in a folder called tagfiles."""
    patterns = ("*/" * depth + "tagfiles/*" for depth in range(_DEEPEST))
    files = sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())
    # the common archive contains every file twice
    files = list({(p.parent.parent.name, p.name): p for p in files}.values())
    if not files:
        raise InputError(f"no folder tagfiles found in {folder}; expected SemCor 3.0")
    for path in files:
        tokens: list[str] = []
        targets: list[Target] = []
        for match in _WORD.finditer(read_bytes(path).decode("utf-8", "replace")):
            if match[0] == "</s>":
                if tokens:
                    yield TaggedSentence(tokens, targets)
                tokens, targets = [], []
                continue
            words = _words(match[3])
            if not words:
                continue
            about = dict(pair.split("=", 1) for pair in match[2].split() if "=" in pair)
            if (lemma := about.get("lemma")) and (senses := about.get("lexsn")):
                keys = tuple(f"{lemma}%{sense}" for sense in senses.split(";") if ":" in sense)
                if keys and keys[0].partition("%")[2][0] in POS:
                    pos = POS[keys[0].partition("%")[2][0]]
                    start = len(tokens)
                    targets.append(Target(start, start + len(words), lemma, pos, keys=keys))
            tokens += words


def read_raganato(data: Path, gold: Path | None = None) -> list[TaggedSentence]:
    """Read an evaluation set of Raganato et al. (2017), with gold senses if given."""
    try:
        root = ElementTree.fromstring(read_bytes(data))
        right: dict[str, tuple[str, ...]] = {}
        if gold is not None:
            for line in read_bytes(gold).decode("utf-8").splitlines():
                if line.strip():
                    name, *keys = line.split()
                    right[name] = tuple(keys)
    except InputError:
        raise
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InputError(f"cannot read {data} and its gold keys: {error}") from error
    sentences = []
    for sentence in root.iter("sentence"):
        tokens: list[str] = []
        targets: list[Target] = []
        for element in sentence:
            words = _words(element.text or "")
            if element.tag == "instance" and words:
                start, name = len(tokens), element.get("id", "")
                targets.append(
                    Target(
                        start,
                        start + len(words),
                        element.get("lemma", ""),
                        element.get("pos", ""),
                        name,
                        right.get(name, ()),
                    )
                )
            tokens += words
        sentences.append(TaggedSentence(tokens, targets))
    return sentences


def _words(written: str) -> list[str]:
    """Split an element into words; those of a phrase are separated by _ or white space."""
    words = written.replace("&amp;", "&").replace("_", " ").split()
    return [TREEBANK_ESCAPES.get(word, word) for word in words]
