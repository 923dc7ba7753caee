"""A small text to index, and a comparison of two indexes."""

from __future__ import annotations

import random

import numpy as np

from elmokit.analysis.index.build import IndexOptions
from elmokit.analysis.index.index_config import NAMES
from elmokit.analysis.index.token_index import Index

WORDS = "the a cat dog sat ran on mat play plays great team river bank money".split()
TOKENIZED = IndexOptions(tokenized=True)


def sentences(n=200, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 12))) for _ in range(n)]


def write_text(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def same_files(a, b):
    for name in {*NAMES} - {"graph", "config.json", "vectors"}:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    # other batches, other rounding
    assert np.abs(Index.open(a).vectors - Index.open(b).vectors).max() < 2e-3
