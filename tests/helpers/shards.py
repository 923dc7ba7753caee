"""Corpora for folders of shards, workers in this process, and checks of what was written."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path

import numpy as np

from elmokit.cluster.scheduler import Outcome, start_writer, write_shard
from elmokit.cluster.shard_reader import ShardFolder
from elmokit.cluster.shard_records import read_records
from elmokit.cluster.shard_store import Store
from elmokit.cluster.shard_tools import verify_shards

FAULTS = Path(__file__).parent / "faults"


def corpus(n: int) -> list[str]:
    """Sentences of different lengths; some are empty, and some are in other scripts."""
    words = "the naïve 学生 sat by river banks with 🙂 notes".split()
    return [" ".join(words[(i + j) % 10] for j in range(i % 13)) + f" {i}" * (i % 7 > 0)
            for i in range(n)]  # fmt: skip


def write_corpus(path: Path, n: int) -> list[str]:
    lines = corpus(n)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [line.strip() for line in lines]


class InlinePool:
    """One worker in this process."""

    workers = range(1)

    def __init__(self, spec, *_):
        self._writer = start_writer(spec, "cpu", None)
        self._outcomes = deque([Outcome(0, "ready")])
        if isinstance(self._writer, str):
            self._outcomes = deque([Outcome(0, "unfit", reason=self._writer)])

    def assign(self, worker, part, attempt):
        self._outcomes.append(Outcome(0, **write_shard(self._writer, part, attempt)))

    def wait(self, seconds):
        return [self._outcomes.popleft()] if self._outcomes else []

    def retire(self, worker):
        pass

    def close(self):
        pass


def with_faults(folder: Path, **faults: str) -> dict[str, str]:
    """An environment whose workers have the faults of a folder; see faults/sitecustomize.py."""
    folder.mkdir(exist_ok=True)
    for name, text in faults.items():
        (folder / name.replace("_", "-")).write_text(text)
    path = os.pathsep.join([str(FAULTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, "ELMOKIT_TEST_FAULTS": str(folder), "OMP_NUM_THREADS": "1"}


def check_vectors(out, elmo, lines, layers="all"):
    """Check that a folder has the vectors of every line exactly once, and nothing else.

    The expected ones are computed by this process, each shard as its worker did.
    """
    assert verify_shards(out) == []
    folder = ShardFolder(out)
    assert json.loads(folder.store.read("manifest.json"))["complete"]
    found = list(folder.rows())
    assert [sentence for sentence, *_ in found] == lines
    assert [tokens for _, tokens, _ in found] == [elmo.tokenize(line) for line in lines]
    expected, first = [], 0
    for record in folder.records.values():
        some = lines[first : first + record.rows]
        expected += elmo.stream(some, layers, dtype=folder.settings["dtype"], done=[])
        first += record.rows
    for (*_, array), wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def finished(out) -> int:
    """How many shards are finished; none of them is partial."""
    records = read_records(Store(out))
    for record in records.values():
        data = (Path(out) / record.file).read_bytes()
        assert (data[:4], data[-4:], len(data)) == (b"PAR1", b"PAR1", record.bytes)
    return len(records)
