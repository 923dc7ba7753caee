"""A text's vectors on disk, and nearest-neighbour search among them.

An index is a folder::

    config.json    how it was built, and the size and CRC-32 of each file
    vectors        unit vector of every token (N, D), float16
    tokens         word number of every token (N,), int32
    starts         where each sentence starts among the tokens, and the end (S + 1,), int64
    digests        digest of each sentence, to recognise it (S,), uint64
    words.txt      every distinct word, one per line
    word_vectors   static unit vector of every word (W, P), float16
    rows           numbers of the tokens in the graph (R,), int64
    graph          nearest-neighbour graph over these; see graph.py
    probe          vectors of three words (3, D), float16, to recognise the model

All files are memory-mapped. Opening an index compares every file with its checksum, at about 1 GB
per second; for files above 1 GiB it compares only the size, unless ``verify=True`` is passed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from elmokit.analysis.index.graph import Graph, Rows
from elmokit.analysis.index.index_config import AGAIN, FILES, IndexConfig
from elmokit.errors import FormatError
from elmokit.io.html_table import facts, html_table
from elmokit.io.notebook import Displayed, Shown

_VERIFIED_BYTES = 1 << 30  # larger files are verified only on request
_AT_ONCE = 4096  # vectors converted to float32 at once, few enough for the CPU's cache
_SPARE = 32  # extra candidates, because the graph does not rank exactly


class Index(Displayed):
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
    def open(cls, folder: str | Path, *, verify: bool = False) -> Index:
        """Open an index written by :func:`~elmokit.analysis.index.build.build_index`.

        Args:
            folder: The index.
            verify: Compare files above 1 GiB with their checksums too.
        """
        path = Path(folder).expanduser()
        config = IndexConfig.read(path)
        try:
            config.verify(path, None if verify else _VERIFIED_BYTES)
            index = cls(path, config)
            index._check()
        except OSError as error:
            raise FormatError(
                f"cannot read the index {path}: {error.strerror or error}; {AGAIN}"
            ) from error
        return index

    def __repr__(self) -> str:
        return f"Index({self.folder.name!r}, tokens={self.config.tokens:,})"

    def _shown(self) -> Shown:
        config = self.config
        values = {
            "sentences": config.sentences,
            "tokens": config.tokens,
            "distinct words": config.words,
            "tokens in the graph": config.rows,
            "layer": config.layer,
            "vector width": config.dim,
            "model": config.model,
        }
        return Shown(html_table(facts(f"Index {self.folder.name}", values)))

    def _check(self) -> None:
        """Raise if numbers in the files point nowhere: a search would fail later."""
        config = self.config
        lengths = np.diff(self._starts)
        for name, holds in (
            ("starts", self._starts[0] == 0 and self._starts[-1] == config.tokens),
            ("starts", lengths.min() > 0),
            ("tokens", self._tokens.min() >= 0 and self._tokens.max() < config.words),
            ("rows", self._rows[0] >= 0 and self._rows[-1] < config.tokens),
            ("rows", (np.diff(self._rows) > 0).all()),
            ("probe", np.isfinite(self.probe).all()),
        ):
            if not holds:
                raise FormatError(f"{self.folder / name} is damaged; {AGAIN}")

    def _map(self, name: str, width: int | None = None) -> npt.NDArray[Any]:
        # "c" (copy on write), because torch warns about read-only arrays; nothing is ever written
        array: npt.NDArray[Any] = np.memmap(self.folder / name, FILES[name], "c")
        return array if width is None else array.reshape(-1, width)

    @cached_property
    def words(self) -> list[str]:
        """Every word, by its number."""
        path = self.folder / "words.txt"
        try:
            words = path.read_bytes().decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError:
            words = []
        if len(words) != self.config.words:
            raise FormatError(f"{path} is not a list of {self.config.words:,} words; {AGAIN}")
        return words

    @cached_property
    def _graph(self) -> Graph:
        graph = Graph.open(self.folder / "graph", self.config.dim)
        if len(graph) != self.config.rows:
            raise FormatError(f"{self.folder / 'graph'} has {len(graph):,} vectors; {AGAIN}")
        return graph

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
            wanted = min(k, len(self._rows)) + _SPARE + (len(exclude) if len(own) else 0)
            rows = self._graph.search(vector, wanted)
            if rows.min(initial=0) < 0 or rows.max(initial=0) >= len(self.vectors):
                raise FormatError(f"{self.folder / 'graph'} is damaged; {AGAIN}")
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
    if not np.isfinite(found).all():
        raise FormatError(f"the index has vectors that are not finite; {AGAIN}")
    best = np.argpartition(-found, min(k, n - 1))[:k] if n else np.zeros(0, np.int64)
    best = best[np.lexsort((best, -found[best]))]
    numbers = best if rows is None else rows[best]
    return list(zip(numbers.tolist(), found[best].clip(-1, 1).tolist(), strict=True))


def digest(tokens: Sequence[str]) -> int:
    """Return a number that identifies a sentence."""
    joined = "\n".join(tokens).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")
