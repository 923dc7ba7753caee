"""Texts as one tensor of code points, for tools whose data loaders send only tensors.

A row is a word: its code points, and then a last character. Numpy drops zeros at the end of a
string, but with the last character a word may end in a zero, and no word looks like padding.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from elmokit.config import TokenEncoderConfig

_LAST = "\x03"


def n_columns(config: TokenEncoderConfig) -> int:
    """The number of columns C: the character CNN of a model reads no more of a word."""
    return config.max_characters + len(_LAST)


def to_codes(sentences: list[list[str]], columns: int) -> tuple[Tensor, Tensor]:
    """Words of B sentences as numbers.

    Args:
        sentences: The words of each.
        columns: C; longer words are cut.

    Returns:
        Code points (B, T, C), zero in the padding, and the mask (B, T), True at words. T is at
        least 1.
    """
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    words = [word[: columns - 1] + _LAST for sentence in sentences for word in sentence]
    rows = np.array(words, f"U{columns}").view(np.int32).reshape(len(words), columns)
    mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]
    codes = np.zeros((*mask.shape, columns), np.int32)
    codes[mask] = rows
    return torch.from_numpy(codes), torch.from_numpy(mask)


def to_words(codes: Tensor) -> list[list[str]]:
    """The words of each sentence, from the code points (B, T, C) of :func:`to_codes`."""
    array = codes.to("cpu", torch.int32).numpy()
    mask = array.any(-1)
    rows = np.ascontiguousarray(array[mask]).view(f"U{array.shape[-1]}")
    words = [word[:-1] for word in rows.ravel().tolist()]
    ends = np.cumsum(mask.sum(-1)).tolist()
    return [words[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
