"""The graph over vectors: which ones it holds, what it finds, how it is saved."""

import numpy as np
import pytest

from elmokit.analysis.index.graph import Graph, build_graph, choose_rows
from elmokit.analysis.index.token_index import nearest
from elmokit.analysis.similarity import unit


def test_recall(tmp_path):
    vectors = unit(np.random.default_rng(0).normal(size=(5000, 64))).astype(np.float16)
    rows = np.arange(5000)
    build_graph(tmp_path / "graph", rows, vectors)
    graph = Graph.open(tmp_path / "graph", 64)
    hits = 0
    for row in range(0, 5000, 50):
        vector = vectors[row].astype(np.float32)
        exact = {r for r, _ in nearest(vectors, vector, 10)}
        hits += len(exact & {r for r, _ in nearest(vectors, vector, 10, graph.search(vector, 42))})
    assert hits / 1000 >= 0.95


def test_most_per_word():
    tokens = np.array([0, 1, 0, 2, 0, 0, 1, 0, 0, 0] * 10, np.int32)
    starts = np.arange(0, 101, 10)
    digests = np.arange(10, dtype=np.uint64)
    rows = choose_rows(tokens, starts, digests, 3, 7)
    assert np.bincount(tokens[rows]).tolist() == [7, 7, 7]
    assert (np.diff(rows) > 0).all()
    of_word = rows[tokens[rows] == 0]
    assert of_word[0] < 20
    assert of_word[-1] >= 80  # from the whole text, not its beginning
    assert choose_rows(tokens, starts, digests, 3, 0).tolist() == list(range(100))
    digests[5] = digests[4]
    assert choose_rows(tokens, starts, digests, 3, 0).tolist() == [*range(50), *range(60, 100)]


def test_a_full_disk(tmp_path, monkeypatch):
    graph = Graph(16)
    graph.add(np.arange(3), np.eye(16, dtype=np.float16)[:3])
    graph.save(tmp_path / "graph")
    before = (tmp_path / "graph").read_bytes()
    monkeypatch.setattr(type(graph._index), "save", lambda self, path: path.write_bytes(b"half"))
    with pytest.raises(OSError, match="space"):
        graph.save(tmp_path / "graph")
    assert (tmp_path / "graph").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["graph"]
