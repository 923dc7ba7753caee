"""WordNet's senses, glosses and lemmas, read from its database files.

Read by hand: three simple file formats, and the packages that read them download their own copy.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from pathlib import Path

from elmokit.errors import InputError
from elmokit.io.lines import read_bytes

POS = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}
"""Part of speech by the digit after the % of a sense key."""
_FILES = {"NOUN": "noun", "VERB": "verb", "ADJ": "adj", "ADV": "adv"}

# suffixes that WordNet's own lemmatiser (morphy) removes, and their replacements
_ENDINGS = {
    "NOUN": [
        ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ],
    "VERB": [
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"),
        ("ing", ""),
    ],
    "ADJ": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "ADV": [],
}  # fmt: skip


class WordNet:
    """Senses of every lemma, the most frequent first.

    Args:
        path: WordNet's folder (index.sense, data.noun, noun.exc and so on), or only its file
            index.sense, which has neither glosses nor irregular forms.
    """

    def __init__(self, path: Path) -> None:
        index = path / "index.sense" if path.is_dir() else path
        self._folder = index.parent
        found: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        self._place: dict[str, tuple[str, int]] = {}
        self._count: dict[str, int] = {}
        try:
            for line in _lines(index):
                key, offset, number, count = line.split()
                lemma, _, rest = key.partition("%")
                found[lemma, POS[rest[:1]]].append((int(number), key))
                self._place[key] = (POS[rest[:1]], max(0, int(offset)))
                self._count[key] = int(count)
        except (ValueError, KeyError) as error:
            raise InputError(f"{index} is not WordNet's index.sense: {error}") from error
        if not found:
            raise InputError(f"{index} is empty; expected WordNet's index.sense")
        self._keys = {word: [key for _, key in sorted(keys)] for word, keys in found.items()}

    def of(self, lemma: str, pos: str) -> list[str]:
        """Return the sense keys of a lemma; empty if WordNet lacks it."""
        return self._keys.get((lemma.lower(), pos), [])

    def of_form(self, form: str) -> list[str]:
        """Return the sense keys of all lemmas of a form, the most frequent first.

        A phrase is written with spaces.
        """
        form = form.replace(" ", "_").lower()
        keys = [
            k for pos in _FILES for lemma in self.lemmas(form, pos) for k in self.of(lemma, pos)
        ]
        return sorted(dict.fromkeys(keys), key=lambda key: -self._count[key])

    def lemmas(self, form: str, pos: str) -> list[str]:
        """Return the lemmas of a form: itself, irregular ones, and those without a suffix."""
        found = [form, *self._irregular.get((form, pos), [])]
        for ending, instead in _ENDINGS[pos]:
            if form.endswith(ending) and len(form) > len(ending):
                found.append(form[: len(form) - len(ending)] + instead)
        return [lemma for lemma in dict.fromkeys(found) if (lemma, pos) in self._keys]

    def gloss(self, key: str) -> str:
        """Return the gloss of a sense; empty without the data files."""
        pos, offset = self._place.get(key, ("", 0))
        data = self._data.get(pos, b"")
        line = data[offset : data.find(b"\n", offset)].decode("utf-8", "replace")
        return line.partition("|")[2].strip()

    @cached_property
    def _data(self) -> dict[str, bytes]:
        paths = {pos: self._folder / f"data.{name}" for pos, name in _FILES.items()}
        return {pos: _read(path) for pos, path in paths.items() if path.is_file()}

    @cached_property
    def _irregular(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for pos, name in _FILES.items():
            path = self._folder / f"{name}.exc"
            if path.is_file():
                try:
                    lines = [line.split() for line in _lines(path)]
                except ValueError as error:
                    raise InputError(f"{path} is not a list of irregular forms: {error}") from error
                found |= {(form, pos): lemmas for form, *lemmas in lines}
        return found


def _lines(path: Path) -> list[str]:
    """Non-blank lines of a file."""
    return [line for line in _read(path).decode("utf-8").splitlines() if line.strip()]


def _read(path: Path) -> bytes:
    return read_bytes(path, "; give WordNet's folder")
