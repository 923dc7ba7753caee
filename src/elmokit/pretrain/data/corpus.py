"""A prepared corpus: token numbers on disk, read on demand."""

from __future__ import annotations

import hashlib
import io
import json
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

_PART = 1 << 24  # tokens that are checked at a time


class Corpus:
    """Sentences as word numbers; the most frequent word is number 0.

    All files are compared with their checksum before anything is taken from them.

    Args:
        folder: Written by :func:`elmokit.pretrain.data.prepare.prepare`.
    """

    FILES = ("corpus.json", "words.txt", "lengths.npy", "documents.npy", "tokens.bin")
    OLD_FILES = ("counts.npy",)
    """Files of older versions, which are not read any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            about = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
            self.n_tokens, self.n_words = int(about["tokens"]), int(about["distinct_words"])
            self.digest = str(about["digest"])
            """Checksum of the text, computed when it was prepared."""
            names = ("words.txt", "lengths.npy", "documents.npy")
            words, lengths, documents = ((folder / name).read_bytes() for name in names)
            self.tokens: Codes = np.memmap(folder / "tokens.bin", np.int32, "r")
            if digest_of(self.tokens, words, lengths, documents) != self.digest:
                raise ValueError("the checksum of its files is another one")
            self.words = words.decode("utf-8").split("\n")[:-1]
            """All words, by number."""
            self.lengths: Codes = np.load(io.BytesIO(lengths))
            self.documents: Numbers = np.load(io.BytesIO(documents))
            if (len(self.tokens), len(self.words)) != (self.n_tokens, self.n_words):
                raise ValueError("its files have other sizes")
        # TypeError and AttributeError: JSON of another structure
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"{folder} is not a complete prepared corpus ({error}); delete it to prepare it "
                "again"
            ) from error

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def counts(self) -> Numbers:
        """How often each word occurs."""
        counts = np.zeros(self.n_words, np.int64)
        for start in range(0, self.n_tokens, _PART):
            counts += np.bincount(self.tokens[start : start + _PART], minlength=self.n_words)
        return counts

    @cached_property
    def starts(self) -> Numbers:
        """Position of each sentence's first token."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths


def digest_of(tokens: Codes, *files: bytes) -> str:
    """Return the checksum of a text: the same words in another order are another text."""
    digest = hashlib.sha256()
    for start in range(0, len(tokens), _PART):
        digest.update(tokens[start : start + _PART].data)
    for file in files:
        digest.update(file)
    return digest.hexdigest()
