"""Lines to embed, and checks of the files written."""

from __future__ import annotations

import json

import h5py
import numpy as np

LINES = ["The first sentence .", "a / b : c", "", "日本 🙂 naïve", "The first sentence .", "x"]


def check_hdf5(path, elmo, lines, layers="all", dtype=np.float32):
    with h5py.File(path) as file:
        index = json.loads(file["sentence_to_index"][0])
        assert index == {line: str(max(i for i, x in enumerate(lines) if x == line))
                         for line in lines}  # fmt: skip
        assert set(file) == {*map(str, range(len(lines))), "sentence_to_index"}
        for i, line in enumerate(lines):
            expected = elmo.encode([line], layers)[0]
            assert file[str(i)].dtype == dtype
            assert file[str(i)].shape == expected.shape
            tolerance = 1e-5 if dtype == np.float32 else 5e-3
            np.testing.assert_allclose(file[str(i)][()], expected, atol=tolerance)


def lines_that_stop(lines, after):
    for number, line in enumerate(lines):
        if number == after:
            raise KeyboardInterrupt
        yield line
