"""Finished sentences in a form that survives a kill: three files that only ever grow.

Vectors and texts are written before the index entry that counts them, so that whatever lies
behind the last index entry is an unfinished write, and is cut off when the spool is opened again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError

_ENTRY = np.dtype([("tokens", "<u4"), ("text_bytes", "<u4")])
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layout:
    """The form of every sentence's array: (T, D), or (K, T, D) for several layers."""

    layer_shape: tuple[int, ...]
    """(K,), or () for one layer."""
    dim: int
    dtype: str

    def shape(self, n_tokens: int) -> tuple[int, ...]:
        """Shape of one sentence's array."""
        return (*self.layer_shape, n_tokens, self.dim)

    @property
    def token_bytes(self) -> int:
        """Bytes one token takes."""
        return math.prod(self.shape(1)) * np.dtype(self.dtype).itemsize


class Spool:
    """Sentences done so far, beside the output they are for.

    Args:
        output: The file they will become; the spool is the folder ``OUTPUT.partial``.
        layout: The form of the arrays.
        settings: What the vectors depend on; a spool is continued only with the same.
    """

    def __init__(self, output: Path, layout: Layout, settings: dict[str, Any]) -> None:
        self.folder = spool_folder(output)
        self.layout = layout
        self.settings = settings
        self._index: Array = np.zeros(0, _ENTRY)
        self._files: dict[str, BinaryIO] = {}
        self.is_new = False  # true once it is known that no earlier run has left anything

    def __len__(self) -> int:
        return len(self._index)

    @property
    def n_tokens(self) -> int:
        """Tokens of all sentences done."""
        return int(self._index["tokens"].sum(dtype=np.int64))

    @property
    def new_output(self) -> Path:
        """Where the final file is written before it is renamed."""
        return self.folder / "output"

    def open(self, resume: bool) -> None:
        """Start afresh, or go on where a killed run stopped."""
        header = self.folder / "settings.json"
        if resume and header.is_file():
            self._check_settings(header)
            self.new_output.unlink(missing_ok=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            for name in ("vectors", "texts", "index"):
                (self.folder / name).touch()
            temporary = header.with_suffix(".tmp")
            temporary.write_text(json.dumps(self.settings), encoding="utf-8")
            os.replace(temporary, header)
        raw = (self.folder / "index").read_bytes()
        self._index = np.frombuffer(raw[: len(raw) // _ENTRY.itemsize * _ENTRY.itemsize], _ENTRY)
        sizes = {
            "vectors": self.n_tokens * self.layout.token_bytes,
            "texts": int(self._index["text_bytes"].sum(dtype=np.int64)),
            "index": self._index.nbytes,
        }
        for name, size in sizes.items():
            self._files[name] = open(self.folder / name, "r+b")  # noqa: SIM115
            if self._files[name].seek(0, os.SEEK_END) < size:
                raise InputError(
                    f"{self.folder}/{name} is shorter than it was, so that the run that was "
                    "stopped cannot be continued; use --restart to begin anew"
                )
            self._files[name].truncate(size)
            self._files[name].seek(size)
        self.is_new = not len(self)

    def append(self, sentences: Sequence[str], arrays: Sequence[Array]) -> None:
        """Add finished sentences; when this returns, they survive a kill."""
        texts = [sentence.encode("utf-8") for sentence in sentences]
        for array in arrays:
            self._files["vectors"].write(np.ascontiguousarray(array).data)
        self._files["texts"].write(b"".join(texts))
        self._sync("vectors", "texts")
        entries = np.zeros(len(texts), _ENTRY)
        entries["tokens"] = [array.shape[-2] for array in arrays]
        entries["text_bytes"] = [len(text) for text in texts]
        self._files["index"].write(entries.tobytes())
        self._sync("index")
        self._index = np.concatenate([self._index, entries])

    def sentences(self) -> Iterator[str]:
        """All texts, in order."""
        with open(self.folder / "texts", "rb") as file:
            for size in self._index["text_bytes"].tolist():
                yield file.read(size).decode("utf-8")

    def __iter__(self) -> Iterator[tuple[str, Array]]:
        """All sentences and their arrays, in order, one at a time in memory."""
        with open(self.folder / "vectors", "rb") as file:
            tokens = self._index["tokens"].tolist()
            for sentence, n in zip(self.sentences(), tokens, strict=True):
                raw = file.read(n * self.layout.token_bytes)
                shape = self.layout.shape(n)
                yield sentence, np.frombuffer(raw, self.layout.dtype).reshape(shape)

    def close(self) -> None:
        """Close the files; the spool stays."""
        while self._files:
            # what is not yet written was not yet promised, and the disk may be full
            try:
                self._files.popitem()[1].close()
            except OSError:
                continue

    def remove(self) -> None:
        """Delete the spool, once its output is in place."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sync(self, *names: str) -> None:
        for name in names:
            self._files[name].flush()
            os.fsync(self._files[name].fileno())

    def _check_settings(self, header: Path) -> None:
        try:
            found = json.loads(header.read_text(encoding="utf-8"))
        except ValueError:
            found = {}
        for key, wanted in self.settings.items():
            if found.get(key) != wanted:
                raise InputError(
                    f"{self.folder} was begun with {key} {found.get(key)}, this run has {wanted}; "
                    "use the same settings, or --restart to begin anew"
                )


def spool_folder(output: Path) -> Path:
    """Where the sentences done so far of an output are kept."""
    return output.with_name(output.name + ".partial")
