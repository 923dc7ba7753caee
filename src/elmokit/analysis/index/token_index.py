"""A text's vectors on disk, and the nearest of them to a vector.

An index is a folder::

    config.json    what it was made of, and how large each file is
    vectors        of every token of the text, of length 1 (N, D), float16
    tokens         which word each token is (N,), int32
    starts         where each sentence begins among the tokens, and the end (S + 1,), int64
    digests        of each sentence, to know it again (S,), uint64
    words.txt      every word, a line each
    word_vectors   of every word without a context, of length 1 (W, P), float16
    rows           which tokens the graph holds (R,), int64
    graph          over these; see graph.py
    probe          vectors of three words (3, D), float16, to know the model again

All of it is mapped, not loaded, so that opening takes milliseconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from elmokit.analysis.index.graph import Graph, Rows
from elmokit.errors import FormatError, InputError
from elmokit.formats import DEFAULT_MODEL

VERSION = 1
FILES = {
    "vectors": "<f2",
    "tokens": "<i4",
    "starts": "<i8",
    "digests": "<u8",
    "word_vectors": "<f2",
    "rows": "<i8",
    "probe": "<f2",
}
"""Types of what the files hold."""
NAMES = (*FILES, "words.txt", "graph", "config.json")
"""All files of an index."""

_AT_ONCE = 4096  # vectors widened to float32 together: few enough to stay near the processor
_SPARE = 32  # found by the graph beside what is asked for, as it does not rank exactly


@dataclass(frozen=True)
class IndexConfig:
    """What an index was made of."""

    version: int
    model: str
    """Name or path of the model."""
    weights: str
    """SHA-256 of its weights."""
    parameters: int
    layer: int
    dim: int
    word_dim: int
    """Width P of the words' own vectors."""
    tokenizer: str
    most_per_word: int
    """Most occurrences of a word in the graph; 0 for all."""
    sentences: int
    tokens: int
    words: int
    rows: int
    """Tokens in the graph."""
    sizes: dict[str, int]
    """Bytes of every file but this one."""

    def find_model(self) -> Path:
        """Where the model is; a bundled one is looked for in the package and nowhere else."""
        if not self.model:
            raise InputError("the index was made with a model that has no file; say which to use")
        return DEFAULT_MODEL.parent / self.model  # which an absolute path takes no notice of

    def write(self, folder: Path) -> None:
        """Write config.json."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexConfig:
        """Read config.json, and check that all files are there and whole."""
        again = "make the index again with elmokit index --force"
        try:
            values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            if values["version"] > VERSION:
                raise FormatError(f"{folder} was written by a later ElmoKit; update this one")
            config = cls(**{field.name: values[field.name] for field in fields(cls)})
            sizes = dict(config.sizes)
        except FileNotFoundError:
            raise InputError(_not_there(folder)) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{folder}/config.json is damaged ({error}); {again}") from error
        for name in NAMES[:-1]:
            path = folder / name
            size = path.stat().st_size if path.is_file() else None
            if size != sizes.get(name, -1):
                found = "is missing" if size is None else f"has {size:,} bytes"
                raise FormatError(
                    f"{path} {found}, not the {sizes.get(name, 0):,} bytes that config.json speaks "
                    f"of; {again}"
                )
        return config


class Index:
    """The vectors of a text. Make one with :meth:`open`.

    Attributes:
        config: What it was made of.
        vectors: (N, D), of length 1.
        probe: (3, D), of length 1.
    """

    def __init__(self, folder: Path, config: IndexConfig) -> None:
        self.folder, self.config = folder, config
        self.vectors = self._map("vectors", config.dim)
        self.probe = self._map("probe", config.dim)
        self._tokens, self._starts = self._map("tokens"), self._map("starts")
        self._digests, self._rows = self._map("digests"), self._map("rows")
        self._word_vectors = self._map("word_vectors", config.word_dim)

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """An index that ``elmokit index`` wrote."""
        path = Path(folder).expanduser()
        return cls(path, IndexConfig.read(path))

    def _map(self, name: str, width: int | None = None) -> npt.NDArray[Any]:
        # "c", as torch complains of what cannot be written; nothing is ever written
        array: npt.NDArray[Any] = np.memmap(self.folder / name, FILES[name], "c")
        return array if width is None else array.reshape(-1, width)

    @cached_property
    def words(self) -> list[str]:
        """Every word, by its number."""
        return (self.folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]

    @cached_property
    def _graph(self) -> Graph:
        return Graph.open(self.folder / "graph", self.config.dim)

    def sentence(self, number: int) -> list[str]:
        """The tokens of a sentence."""
        start, end = self._starts[number : number + 2]
        return [self.words[word] for word in self._tokens[start:end].tolist()]

    def place(self, row: int) -> tuple[int, int]:
        """Number of a token's sentence, and the token's place in it."""
        number = int(np.searchsorted(self._starts, row, "right")) - 1
        return number, row - int(self._starts[number])

    def search(
        self,
        vector: npt.NDArray[np.float32],
        k: int,
        *,
        but: Sequence[str] = (),
        word: str | None = None,
        brute: bool = False,
    ) -> list[tuple[int, float]]:
        """Numbers of the k tokens nearest to a unit vector (D,), and their cosines.

        Of a sentence that is there several times, only the first is looked at.

        Args:
            vector: What to look for.
            k: How many.
            but: Tokens of a sentence to be passed over.
            word: Look at all occurrences of this word, in upper or lower case, and at no others.
            brute: Look at all tokens of the graph, one by one.
        """
        own = np.flatnonzero(self._digests == digest(but))
        if word is not None:
            rows = self._occurrences(word)
        elif brute:
            rows = np.asarray(self._rows)
        else:
            rows = self._graph.search(vector, k + _SPARE + (len(but) if len(own) else 0))
        if len(own):
            rows = rows[~np.isin(self._sentences_of(rows), own)]
        return nearest(self.vectors, vector, k, rows)

    def words_like(
        self, vector: npt.NDArray[np.float32], k: int, but: str = ""
    ) -> list[tuple[str, float]]:
        """The k words whose own vectors are nearest to a unit vector (P,), with their cosines.

        Args:
            vector: What to look for.
            k: How many.
            but: A word to be passed over, in upper and lower case.
        """
        same = set(self._same(but).tolist())
        found = nearest(self._word_vectors, vector, k + len(same))
        return [(self.words[row], value) for row, value in found if row not in same][:k]

    def _same(self, word: str) -> npt.NDArray[np.int64]:
        """Numbers of a word, in upper and lower case."""
        folded = word.casefold()
        return np.array([i for i, w in enumerate(self.words) if w.casefold() == folded], np.int64)

    def _occurrences(self, word: str) -> Rows:
        rows = np.flatnonzero(np.isin(self._tokens, self._same(word)))
        sentences = self._sentences_of(rows)
        places = np.stack([self._digests[sentences], (rows - self._starts[sentences]).view("u8")])
        _, first = np.unique(places, axis=1, return_index=True)
        return rows[np.sort(first)]

    def _sentences_of(self, rows: Rows) -> Rows:
        return np.searchsorted(self._starts, rows, "right") - 1


def nearest(
    vectors: npt.NDArray[np.float16],
    vector: npt.NDArray[np.float32],
    k: int,
    rows: Rows | None = None,
) -> list[tuple[int, float]]:
    """The k rows of vectors (N, D) nearest to a vector (D,), the nearest first, with their cosines.

    Args:
        vectors: Of length 1, as is the vector.
        vector: What to look for.
        k: How many; fewer where there are not so many.
        rows: The rows to look at; all if left out.
    """
    n = len(vectors) if rows is None else len(rows)
    found = np.empty(n, np.float32)
    wanted = torch.from_numpy(np.ascontiguousarray(vector))
    for first in range(0, n, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        some = vectors[part] if rows is None else vectors[rows[part]]
        found[part] = (torch.from_numpy(some).float() @ wanted).numpy()
    best = np.argpartition(-found, min(k, n - 1))[:k] if n else np.zeros(0, np.int64)
    best = best[np.lexsort((best, -found[best]))]
    numbers = best if rows is None else rows[best]
    return list(zip(numbers.tolist(), found[best].clip(-1, 1).tolist(), strict=True))


def digest(tokens: Sequence[str]) -> int:
    """A number to know a sentence again by."""
    joined = "\n".join(tokens).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


def _not_there(folder: Path) -> str:
    if folder.with_name(folder.name + ".partial").is_dir():
        return (
            f"the index {folder} was not finished; add --resume to the elmokit index command that "
            "makes it"
        )
    return f"there is no index {folder}; make one with elmokit index TEXT --out {folder}"
