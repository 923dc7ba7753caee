"""A resumable job: texts and their vectors, computed one after another, then one output.

Until the output is complete, finished texts are kept in the folder ``OUTPUT.partial``::

    settings.json   what the vectors depend on; a job is resumed only with the same settings
    vectors         the values of all arrays, one after another
    texts           all texts, one after another
    index           for each text, its number of tokens and of bytes

The last three files only grow. Vectors and texts are on disk before the index entry that counts
them. Bytes beyond the last index entry are therefore an unfinished write, which is cut off when the
job is resumed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError, OutputError
from elmokit.io.atomic import CONTINUE, clear_errors, new_file, replace_folder, write_text

_ENTRY = np.dtype([("tokens", "<u4"), ("text_bytes", "<u4")])
_SETTINGS = "settings.json"
_GROUP_BYTES = 64 << 20  # vectors collected before they are written
_OR_RESTART = "or pass restart=True to start over"

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layout:
    """The form of every array: (T, D), or (K, T, D) for several layers."""

    layer_shape: tuple[int, ...]
    """(K,), or () for one layer."""
    dim: int
    """Width D of the vectors."""
    dtype: str

    def shape(self, n_tokens: int) -> tuple[int, ...]:
        """Shape of the array of a text with so many tokens."""
        return (*self.layer_shape, n_tokens, self.dim)

    @property
    def token_bytes(self) -> int:
        """Bytes per token."""
        return math.prod(self.shape(1)) * np.dtype(self.dtype).itemsize


class Job:
    """Texts finished so far. Use :func:`open_job` to start or resume one.

    Args:
        output: The file or folder that the job makes.
        layout: The form of the arrays.
        settings: Everything that the vectors depend on.
    """

    FILES = ("vectors", "texts", "index", _SETTINGS)

    def __init__(self, output: Path, layout: Layout, settings: dict[str, Any]) -> None:
        self.output, self.folder = output, _partial(output)
        self.layout, self.settings = layout, settings
        self._index: Array = np.zeros(0, _ENTRY)
        self._files: dict[str, BinaryIO] = {}

    def __len__(self) -> int:
        """Number of finished texts."""
        return len(self._index)

    @property
    def n_tokens(self) -> int:
        """Tokens of all finished texts."""
        return int(self._index["tokens"].sum(dtype=np.int64))

    def texts(self) -> Iterator[str]:
        """All finished texts, in order."""
        with open(self.folder / "texts", "rb") as file:
            for size in self._index["text_bytes"].tolist():
                yield file.read(size).decode("utf-8")

    def __iter__(self) -> Iterator[tuple[str, Array]]:
        """All finished texts and their arrays, in order, one at a time in memory."""
        with open(self.folder / "vectors", "rb") as file:
            tokens = self._index["tokens"].tolist()
            for text, n in zip(self.texts(), tokens, strict=True):
                raw = file.read(n * self.layout.token_bytes)
                yield text, np.frombuffer(raw, self.layout.dtype).reshape(self.layout.shape(n))

    # Work

    def remaining(self, texts: Iterable[str], unit: str) -> Iterator[str]:
        """Skip the texts that are finished, and raise if they have changed.

        Args:
            texts: All texts of the job, from the first.
            unit: What a text is called in errors, as "line".
        """
        n_done, number = len(self), 0
        done = self.texts() if n_done else iter(())
        for number, text in enumerate(texts, 1):
            if number > n_done:
                yield text
            elif next(done) != text:
                raise InputError(
                    f"{unit} {number} has changed since the earlier run; give the same input, "
                    f"{_OR_RESTART}"
                )
        if number < n_done:
            raise InputError(
                f"the input has {number} {unit}s, but the earlier run finished {n_done}; give the "
                f"same input, {_OR_RESTART}"
            )

    def run(
        self,
        texts: Iterable[str],
        encode: Callable[[Iterator[str]], Iterable[Array]],
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Compute the arrays of texts, and append both to the job.

        Args:
            texts: The remaining texts.
            encode: Yields one array per text, in order. It may read several texts ahead.
            advance: Called with the number of texts appended.
        """
        waiting: deque[str] = deque()  # read by encode, but without an array yet
        group: list[tuple[str, Array]] = []
        n_bytes = 0

        def reading() -> Iterator[str]:
            for text in texts:
                waiting.append(text)
                yield text

        for array in encode(reading()):
            group.append((waiting.popleft(), array))
            n_bytes += array.nbytes
            # if none is waiting, encode reads next, which may fail or take long
            if not waiting or n_bytes >= _GROUP_BYTES:
                self.append([text for text, _ in group], [array for _, array in group])
                advance(len(group))
                group, n_bytes = [], 0

    def append(self, texts: Sequence[str], arrays: Sequence[Array]) -> None:
        """Add finished texts. When this returns, they survive a kill."""
        encoded = [text.encode("utf-8") for text in texts]
        for array in arrays:
            self._files["vectors"].write(np.ascontiguousarray(array).data)
        self._files["texts"].write(b"".join(encoded))
        self._sync("vectors", "texts")
        entries = np.zeros(len(encoded), _ENTRY)
        entries["tokens"] = [array.shape[-2] for array in arrays]
        entries["text_bytes"] = [len(text) for text in encoded]
        self._files["index"].write(entries.tobytes())
        self._sync("index")
        self._index = np.concatenate([self._index, entries])

    # The end

    @contextlib.contextmanager
    def output_file(self) -> Iterator[Path]:
        """Yield a temporary path. On success it becomes the output and the job is removed."""
        with new_file(self.output, temporary=self._new_output, then=CONTINUE) as new:
            yield new
        self.remove()

    def output_folder(self, keep: Collection[str]) -> None:
        """Turn the job's folder into the output.

        Args:
            keep: The files of :attr:`FILES` that belong to the output; the others are deleted.
        """
        self.close()
        replace_folder(self.folder, self.output)
        for name in self.FILES:
            if name not in keep:
                (self.output / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files. The job stays on disk."""
        while self._files:
            # a text counts only once append has returned, so unwritten bytes may be dropped, as
            # happens on a full disk
            with contextlib.suppress(OSError):
                self._files.popitem()[1].close()

    def remove(self) -> None:
        """Delete the job from disk."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Opening

    def start(self) -> None:
        """Make an empty job, and delete what an earlier run left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        try:
            for name in self.FILES[:-1]:
                (self.folder / name).touch()
            write_text(self.folder / _SETTINGS, json.dumps(self.settings))
            self._open_files()
        except BaseException:
            self.remove()
            raise

    def resume(self) -> None:
        """Continue the job of an earlier run, or start one if there is none."""
        if not (self.folder / _SETTINGS).is_file():
            self.start()
            return
        self._check_settings()
        self._new_output.unlink(missing_ok=True)
        raw = (self.folder / "index").read_bytes()
        n_entries = len(raw) // _ENTRY.itemsize
        self._index = np.frombuffer(raw[: n_entries * _ENTRY.itemsize], _ENTRY)
        self._open_files()

    @property
    def _new_output(self) -> Path:
        return self.folder / "output"

    def _open_files(self) -> None:
        """Open the files and cut off what follows the last finished text."""
        sizes = {
            "vectors": self.n_tokens * self.layout.token_bytes,
            "texts": int(self._index["text_bytes"].sum(dtype=np.int64)),
            "index": self._index.nbytes,
        }
        for name, size in sizes.items():
            self._files[name] = open(self.folder / name, "r+b")  # noqa: SIM115
            if self._files[name].seek(0, os.SEEK_END) < size:
                raise InputError(
                    f"{self.folder}/{name} is truncated, so the earlier run cannot be resumed; "
                    "pass restart=True to start over"
                )
            self._files[name].truncate(size)
            self._files[name].seek(size)

    def _check_settings(self) -> None:
        try:
            found = json.loads((self.folder / _SETTINGS).read_text(encoding="utf-8"))
        except ValueError:
            found = {}
        for key, value in self.settings.items():
            if found.get(key) != value:
                # checksums say nothing to a reader
                is_checksum = re.fullmatch(r"[0-9a-f]{40,}", str(value)) is not None
                change = f"had {key} {found.get(key)}, this one has {value}"
                raise InputError(
                    f"the earlier run to {self.output} "
                    f"{f'used another {key}' if is_checksum else change}; use the same settings, "
                    f"{_OR_RESTART}"
                )

    def _sync(self, *names: str) -> None:
        for name in names:
            self._files[name].flush()
            os.fsync(self._files[name].fileno())


@contextlib.contextmanager
def open_job(
    output: Path, layout: Layout, settings: dict[str, Any], *, resume: bool, restart: bool
) -> Iterator[Job]:
    """Start or resume a job, and close it at the end.

    A job that ends early stays on disk, unless no text was finished.

    Args:
        output: As for :class:`Job`.
        layout: As for :class:`Job`.
        settings: As for :class:`Job`.
        resume: Continue an earlier run, if there is one.
        restart: Discard an earlier run.
    """
    if resume and restart:
        raise InputError("pass resume=True or restart=True, not both")
    if has_partial(output) and not (resume or restart):
        raise OutputError(
            f"an earlier run to {output} was stopped; pass resume=True to continue it, "
            f"{_OR_RESTART}"
        )
    job = Job(output, layout, settings)
    with clear_errors(output, CONTINUE):
        try:
            if resume:
                job.resume()
            else:
                job.start()
        except BaseException:
            job.close()
            raise
        try:
            yield job
        finally:
            job.close()
            if not len(job):
                job.remove()


def has_partial(output: Path) -> bool:
    """Whether a stopped run to this output left something to resume."""
    return _partial(output).exists()


def _partial(output: Path) -> Path:
    return output.with_name(output.name + ".partial")
