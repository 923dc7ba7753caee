"""Texts whose words are tagged with WordNet senses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from elmokit.analysis.senses.wordnet import POS
from elmokit.errors import InputError

_WORD = re.compile(r"<(wf|punc)([^>]*)>([^<]*)</(?:wf|punc)>|</s>")
_ATTRIBUTE = re.compile(r"(\w+)=(\S+)")
_WRITTEN = {
    "``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{",
    "-RCB-": "}",
}  # fmt: skip
"""What treebanks write instead of quotation marks and brackets, and what these are."""


@dataclass(frozen=True)
class Target:
    """A word or phrase whose sense is asked for or known."""

    start: int
    """Its first token…"""
    end: int
    """…and the one behind its last."""
    lemma: str
    pos: str
    """NOUN, VERB, ADJ or ADV."""
    id: str = ""
    keys: tuple[str, ...] = ()
    """Sense keys that are right, such as bank%1:14:00::."""


@dataclass(frozen=True)
class TaggedSentence:
    """Tokens, some of which have senses."""

    tokens: list[str]
    targets: list[Target]


def read_semcor(folder: Path) -> Iterator[TaggedSentence]:
    """Sentences of SemCor 3.0: every file under a folder tagfiles."""
    files = sorted(p for p in folder.rglob("*") if p.parent.name == "tagfiles" and p.is_file())
    # the archive in circulation holds everything twice
    files = list({(p.parent.parent.name, p.name): p for p in files}.values())
    if not files:
        raise InputError(f"there is no folder tagfiles with files under {folder}; give SemCor 3.0")
    for path in files:
        tokens: list[str] = []
        targets: list[Target] = []
        for match in _WORD.finditer(path.read_text(encoding="utf-8", errors="replace")):
            if match[0] == "</s>":
                if tokens:
                    yield TaggedSentence(tokens, targets)
                tokens, targets = [], []
                continue
            words = _words(match[3])
            if not words:
                continue
            about = dict(_ATTRIBUTE.findall(match[2]))
            if (lemma := about.get("lemma")) and (senses := about.get("lexsn")):
                keys = tuple(f"{lemma}%{sense}" for sense in senses.split(";") if ":" in sense)
                if keys and keys[0].partition("%")[2][0] in POS:
                    pos = POS[keys[0].partition("%")[2][0]]
                    start = len(tokens)
                    targets.append(Target(start, start + len(words), lemma, pos, keys=keys))
            tokens += words


def read_raganato(data: Path, gold: Path | None = None) -> list[TaggedSentence]:
    """Sentences of an evaluation set of Raganato et al. (2017), with right senses if given."""
    try:
        root = ElementTree.parse(data).getroot()
        right: dict[str, tuple[str, ...]] = {}
        if gold is not None:
            for line in gold.read_text(encoding="utf-8").splitlines():
                if line.strip():
                    name, *keys = line.split()
                    right[name] = tuple(keys)
    except (OSError, ElementTree.ParseError, ValueError) as error:
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
    """The words of an element: those of a phrase stand apart by _, or by white space."""
    return [_WRITTEN.get(w, w) for w in written.replace("&amp;", "&").replace("_", " ").split()]
