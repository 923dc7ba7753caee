"""A text's vectors on disk, and nearest-neighbour search among them.

An index is a folder::

    config.json    how it was built, and the size of each file
    vectors        unit vector of every token (N, D), float16
    tokens         word number of every token (N,), int32
    starts         where each sentence starts among the tokens, and the end (S + 1,), int64
    digests        digest of each sentence, to recognise it (S,), uint64
    words.txt      every distinct word, one per line
    word_vectors   static unit vector of every word (W, P), float16
    rows           numbers of the tokens in the graph (R,), int64
    graph          nearest-neighbour graph over these; see graph.py
    probe          vectors of three words (3, D), float16, to recognise the model

All files are memory-mapped, so opening an index takes milliseconds.
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
"""Data types of the files."""
NAMES = (*FILES, "words.txt", "graph", "config.json")
"""All files of an index."""

_AT_ONCE = 4096  # vectors converted to float32 at once, few enough for the CPU's cache
_SPARE = 32  # extra candidates, because the graph does not rank exactly


@dataclass(frozen=True)
class IndexConfig:
    """How an index was built."""

    version: int
    model: str
    """Name or path of the model."""
    weights: str
    """SHA-256 of its weights."""
    parameters: int
    layer: int
    dim: int
    word_dim: int
    """Width P of the static word vectors."""
    tokenizer: str
    most_per_word: int
    """Most occurrences of a word in the graph; 0 means all."""
    sentences: int
    tokens: int
    words: int
    rows: int
    """Tokens in the graph."""
    sizes: dict[str, int]
    """Bytes of every file except config.json."""

    def find_model(self) -> Path:
        """Return the path of the model; bundled models are found only in the package."""
        if not self.model:
            raise InputError("the model of this index was never saved; choose one with model=")
        return DEFAULT_MODEL.parent / self.model  # an absolute path stays as it is

    def write(self, folder: Path) -> None:
        """Write config.json."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexConfig:
        """Read config.json, and check that all files exist and are complete."""
        again = "build the index again with force=True"
        try:
            values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            if values["version"] > VERSION:
                raise FormatError(f"{folder} was written by a newer ElmoKit; update ElmoKit")
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
                    f"{path} {found}; expected {sizes.get(name, 0):,} bytes as in config.json; "
                    f"{again}"
                )
        return config


class Index:
    """The vectors of a text. Open one with :meth:`open`.

    Attributes:
        config: How it was built.
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
        """Open an index written by :func:`~elmokit.analysis.index.build.build_index`."""
        path = Path(folder).expanduser()
        return cls(path, IndexConfig.read(path))

    def _map(self, name: str, width: int | None = None) -> npt.NDArray[Any]:
        # "c" (copy on write), because torch warns about read-only arrays; nothing is ever written
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
        """Return the number of a token's sentence, and the token's position in it."""
        number = int(np.searchsorted(self._starts, row, "right")) - 1
        return number, row - int(self._starts[number])

    def search(
        self,
        vector: npt.NDArray[np.float32],
        k: int,
        *,
        exclude: Sequence[str] = (),
        word: str | None = None,
        brute: bool = False,
    ) -> list[tuple[int, float]]:
        """Find the k tokens nearest to a unit vector (D,): numbers and cosine similarities.

        Of repeated sentences, only the first counts.

        Args:
            vector: The query.
            k: Number of results.
            exclude: Tokens of a sentence to skip.
            word: Search only the occurrences of this word, regardless of case.
            brute: Search all tokens of the graph exhaustively.
        """
        own = np.flatnonzero(self._digests == digest(exclude))
        if word is not None:
            rows = self._occurrences(word)
        elif brute:
            rows = np.asarray(self._rows)
        else:
            rows = self._graph.search(vector, k + _SPARE + (len(exclude) if len(own) else 0))
        if len(own):
            rows = rows[~np.isin(self._sentences_of(rows), own)]
        return nearest(self.vectors, vector, k, rows)

    def words_like(
        self, vector: npt.NDArray[np.float32], k: int, exclude: str = ""
    ) -> list[tuple[str, float]]:
        """Find the k words whose static vectors are nearest to a unit vector (P,).

        Args:
            vector: The query.
            k: Number of results.
            exclude: A word to skip, regardless of case.

        Returns:
            Words with their cosine similarities, nearest first.
        """
        same = set(self._same(exclude).tolist())
        found = nearest(self._word_vectors, vector, k + len(same))
        return [(self.words[row], value) for row, value in found if row not in same][:k]

    def _same(self, word: str) -> npt.NDArray[np.int64]:
        """Numbers of a word, regardless of case."""
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
    """Find the k rows of vectors (N, D) nearest to a vector (D,), with cosine similarities.

    Args:
        vectors: Unit vectors.
        vector: The query, a unit vector.
        k: Number of results, nearest first; fewer if there are fewer rows.
        rows: The rows to search; default all.
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
    """Return a number that identifies a sentence."""
    joined = "\n".join(tokens).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


def _not_there(folder: Path) -> str:
    if folder.with_name(folder.name + ".partial").is_dir():
        return f"the index {folder} is not finished; build it with resume=True"
    return f"there is no index {folder}; build one with elmokit index"
