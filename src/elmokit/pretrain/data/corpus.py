"""A prepared corpus: token numbers on disk, read on demand."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


class Corpus:
    """Sentences as word numbers; the most frequent word is number 0.

    Args:
        folder: Written by :func:`elmokit.pretrain.data.prepare.prepare`.
    """

    FILES = (
        "corpus.json",
        "words.txt",
        "counts.npy",
        "lengths.npy",
        "documents.npy",
        "tokens.bin",
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            about = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
            self.n_tokens, self.n_words = int(about["tokens"]), int(about["distinct_words"])
            self.digest = str(about["digest"])
            """Checksum of the text, computed when it was prepared."""
            self.counts: Numbers = np.load(folder / "counts.npy")
            self.lengths: Codes = np.load(folder / "lengths.npy")
            self.documents: Numbers = np.load(folder / "documents.npy")
            self.tokens: Codes = np.memmap(folder / "tokens.bin", np.int32, "r")
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise FormatError(
                f"{folder} is not a complete prepared corpus ({error}); delete it to prepare it "
                "again"
            ) from error
        if len(self.tokens) != self.n_tokens or int(self.lengths.sum()) != self.n_tokens:
            raise FormatError(
                f"the corpus in {folder} is damaged: {len(self.tokens):,} tokens instead of "
                f"{self.n_tokens:,}; delete it to prepare it again"
            )

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def words(self) -> list[str]:
        """All words, by number."""
        return (self.folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]

    @cached_property
    def starts(self) -> Numbers:
        """Position of each sentence's first token."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths
