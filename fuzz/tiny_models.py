"""Tiny models with random weights, and random texts for them."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from elmokit import ContextConfig, Elmo, ModelConfig, TokenEncoderConfig

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.models import (  # type: ignore[import-not-found]
    TINY,
    VOCABULARY,
    many_langs_folder,
    write_published,
)

MODELS = ("lstm", "lm", "transformer", "codepoints")
"""LSTMs with active clipping, a softmax, a transformer, and an alphabet of codepoints."""

_SPECIAL = ("<S>", "</S>", "<UNK>", "<bos>", "<eos>", "", ".", "n't", "don't", "a" * 60, "é" * 50)
_RANGES = (
    (0, 0x20),  # controls
    (0x20, 0x7F),
    (0x80, 0x250),
    (0x300, 0x370),  # combining marks
    (0x590, 0x700),  # right to left
    (0x2000, 0x2070),  # spaces, zero-width characters, direction marks
    (0x3000, 0x3100),
    (0x4E00, 0x9FFF),
    (0xD800, 0xE000),  # halves of surrogate pairs
    (0xFE00, 0x10000),
    (0x1F300, 0x1FAFF),  # emoji
    (0x10000, 0x110000),
)


@cache
def model(name: str) -> Elmo:
    """A model by name: the bundled one, or a tiny one with random weights."""
    if name == "en":
        return Elmo.load(device="cpu")
    if name == "transformer":
        context = ContextConfig("transformer", 2, 24, 16, n_heads=2)
        encoder = TokenEncoderConfig(((1, 4), (2, 8), (3, 8)), max_characters=20)
        return Elmo.random(ModelConfig(encoder, context, "english"), device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if name == "codepoints":
            many_langs_folder(path)
            return Elmo.load(path, tokenizer="characters", device="cpu")
        write_published(path, TINY, vocabulary=VOCABULARY if name == "lm" else None)
        return Elmo.load(path, tokenizer="english-hyphens", device="cpu", cache_mb=0)


def random_text(rng: random.Random) -> Any:
    """A string, or tokens in some kind of list."""
    if rng.random() < 0.4:
        words = [random_word(rng)[:300] for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 20]))]
        spaces = [" ", "  ", "\t", "\n", "\r\n", "\u3000", "\x85", "\u2028", "", "\x00", "-", "."]
        return "".join(word + rng.choice(spaces) for word in words)
    tokens = [random_word(rng) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 20]))]
    kinds: list[Callable[[list[str]], Any]] = [list, list, tuple]
    if all("\0" not in token for token in tokens):  # numpy drops a NUL at the end
        kinds.append(partial(np.array, dtype=str))
    return rng.choice(kinds)(tokens)


def random_word(rng: random.Random) -> str:
    """A word of any script, mostly short."""
    if rng.random() < 0.3:
        return rng.choice([*_SPECIAL, *VOCABULARY])
    low, high = rng.choice(_RANGES)
    length = (
        rng.choice([1, 1, 2, 3, 5, 8, 20]) if rng.random() < 0.99 else rng.choice([300, 10_000])
    )
    if rng.random() < 0.1:
        return chr(rng.randrange(low, high)) * length
    return "".join(chr(rng.randrange(low, high)) for _ in range(length))
