"""The characters of words as numbers, for a task's own character CNN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

BYTES = 256
"""Characters are the bytes of UTF-8."""

_PADDING = 0


def character_ids(words: Sequence[Sequence[str]], longest: int, most: int = 30) -> Tensor:
    """Return the bytes (B, T, C) of words, shifted by one; 0 is padding."""
    encoded = [word.encode("utf-8", "replace")[:most] for row in words for word in row]
    lengths = np.array([len(data) for data in encoded], np.int64)
    columns = max(1, int(lengths.max(initial=0)))
    # a mask selects its places row by row, the order in which words and bytes are joined
    of_words = np.zeros((len(encoded), columns), np.int64)
    joined = np.frombuffer(b"".join(encoded), np.uint8)
    of_words[np.arange(columns) < lengths[:, None]] = joined.astype(np.int64) + 1
    ids = np.full((len(words), longest, columns), _PADDING, np.int64)
    ids[np.arange(longest) < np.array([len(row) for row in words])[:, None]] = of_words
    return torch.from_numpy(ids)
