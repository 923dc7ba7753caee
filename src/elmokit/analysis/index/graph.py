"""A graph over unit vectors, by which the nearest ones are found without looking at all of them.

HNSW, as usearch builds it, over vectors of float16; bfloat16 is a little faster to add on some
processors, but confuses neighbours that are very near. usearch maps a graph's file instead of
loading it, goes on with a graph that was saved, and brings no other package but numkong and tqdm;
faiss, a larger package, would do as well.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from elmokit.errors import FormatError, MissingExtraError
from elmokit.io.progress import DelayedProgress

Rows = npt.NDArray[np.int64]

# over 99% of the ten nearest of 250,000 vectors of an English text are found with these, a vector
# taking about 0.4 ms of a processor to add; twice as much care in adding takes twice the time
_CONNECTIONS, _CARE_IN_ADDING, _CARE_IN_SEARCH = 16, 64, 256

_AT_ONCE = 4096
_SAVE_SECONDS = 600.0  # work that a kill may cost


class Graph:
    """Unit vectors by their numbers.

    Args:
        dim: Width D of the vectors.
    """

    def __init__(self, dim: int) -> None:
        try:
            from usearch.index import Index
        except ImportError:
            raise MissingExtraError("usearch", "index", "Searching a text's vectors") from None
        self._index: Any = Index(
            ndim=dim,
            metric="ip",  # of unit vectors, the cosine, and faster
            dtype="f16",
            connectivity=_CONNECTIONS,
            expansion_add=_CARE_IN_ADDING,
            expansion_search=_CARE_IN_SEARCH,
        )

    @classmethod
    def open(cls, path: Path, dim: int, *, to_add: bool = False) -> Graph:
        """A graph that was saved.

        Args:
            path: Its file.
            dim: Width D of the vectors.
            to_add: Load all of it, so that it can grow; else it is only mapped.
        """
        graph = cls(dim)
        try:
            (graph._index.load if to_add else graph._index.view)(path)
        except (RuntimeError, OSError) as error:
            raise FormatError(f"{path} is no whole graph: {error}") from error
        if graph._index.ndim != dim:
            raise FormatError(f"{path} is of {graph._index.ndim} dimensions instead of {dim}")
        graph._index.expansion_add = _CARE_IN_ADDING
        graph._index.expansion_search = _CARE_IN_SEARCH
        return graph

    def __len__(self) -> int:
        return len(self._index)

    def add(self, rows: Rows, vectors: npt.NDArray[np.float16]) -> None:
        """Add vectors (N, D) under their numbers (N,)."""
        self._index.add(rows, vectors, threads=torch.get_num_threads())

    def search(self, vector: npt.NDArray[np.float32], k: int) -> Rows:
        """Numbers of about the k nearest of a vector (D,)."""
        return np.asarray(self._index.search(vector, k, threads=1).keys, np.int64)

    def save(self, path: Path) -> None:
        """Write it, under another name first, so that a graph that was there is never half lost."""
        new = path.with_name(path.name + ".new")
        try:
            self._index.save(new)
        except RuntimeError as error:
            raise OSError(str(error)) from error
        if (
            new.stat().st_size < self._index.serialized_length
        ):  # usearch says nothing of a full disk
            new.unlink()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.replace(new, path)


def build_graph(path: Path, rows: Rows, vectors: npt.NDArray[np.float16]) -> None:
    """Write a graph, going on with one that a stopped run left.

    Args:
        path: Its file.
        rows: Which vectors it is to hold, the same as in the stopped run.
        vectors: (N, D), of length 1.
    """
    dim = vectors.shape[1]
    try:
        graph = Graph.open(path, dim, to_add=True) if path.is_file() else Graph(dim)
    except FormatError:
        graph = Graph(dim)
    saved = time.monotonic()
    with DelayedProgress("building the graph", len(rows), "vectors") as bar:
        bar.advance(len(graph))
        for first in range(len(graph), len(rows), _AT_ONCE):
            some = rows[first : first + _AT_ONCE]
            graph.add(some, vectors[some])
            bar.advance(len(some))
            if time.monotonic() - saved > _SAVE_SECONDS:
                graph.save(path)
                saved = time.monotonic()
    graph.save(path)


def choose_rows(
    tokens: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    digests: npt.NDArray[np.uint64],
    n_words: int,
    most_per_word: int,
) -> Rows:
    """Which tokens the graph is to hold, in order.

    Sentences that were there before are left out, and of every word all but so many occurrences,
    evenly spread.

    Args:
        tokens: Which word each token is (N,).
        starts: Where sentences begin, and the end (S + 1,).
        digests: Of every sentence (S,).
        n_words: How many words there are.
        most_per_word: Most occurrences of each; 0 for all.
    """
    fresh = np.zeros(len(digests), bool)
    fresh[np.unique(digests, return_index=True)[1]] = True
    rows = np.flatnonzero(np.repeat(fresh, np.diff(starts)))
    if not most_per_word:
        return rows
    words = tokens[rows]
    counts = np.bincount(words, minlength=n_words)
    rank = np.empty(len(rows), np.int64)  # how many of the same word come before
    rank[np.argsort(words, kind="stable")] = np.arange(len(rows)) - np.repeat(
        np.cumsum(counts) - counts, counts
    )
    n, most = counts[words], np.minimum(counts, most_per_word)[words]
    return rows[rank * most // n < (rank + 1) * most // n]
