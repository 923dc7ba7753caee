"""A prepared corpus: numbers on disk, read as they are needed."""

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
    """Sentences of a corpus as numbers of its words, the most frequent word being 0.

    Args:
        folder: What :func:`elmokit.pretrain.data.prepare.prepare` wrote.
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
            """What tells this text from any other; made when the text was prepared."""
            self.counts: Numbers = np.load(folder / "counts.npy")
            self.lengths: Codes = np.load(folder / "lengths.npy")
            self.documents: Numbers = np.load(folder / "documents.npy")
            self.tokens: Codes = np.memmap(folder / "tokens.bin", np.int32, "r")
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise FormatError(
                f"{folder} is not a whole prepared corpus ({error}); delete it, and it is made anew"
            ) from error
        if len(self.tokens) != self.n_tokens or int(self.lengths.sum()) != self.n_tokens:
            raise FormatError(
                f"the corpus in {folder} is damaged: {len(self.tokens):,} tokens instead of "
                f"{self.n_tokens:,}; delete it, and it is made anew"
            )

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def words(self) -> list[str]:
        """Every word, by its number."""
        return (self.folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]

    @cached_property
    def starts(self) -> Numbers:
        """Where each sentence begins among all tokens."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths
