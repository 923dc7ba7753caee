"""A resumable job: texts and their vectors, computed one after another, then one output.

Until the output is complete, finished texts are kept in the folder ``OUTPUT.partial``::

    lock            held by the process that works on the job
    settings.json   what the vectors depend on; a job is resumed only with the same settings
    vectors         the values of all arrays, one after another
    texts           all texts, one after another
    index           for each text, its number of tokens and of bytes, and checksums
    output          the output while it is written

Vectors, texts and index only grow. Vectors and texts are on disk before the index entry that counts
them. Bytes beyond the last index entry are therefore an unfinished write, which is cut off when the
job is resumed. The same happens to texts whose checksums are wrong, and to all texts after them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import struct
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError, OutputError
from elmokit.io.atomic import (
    CONTINUE,
    clear_errors,
    new_file,
    remove_path,
    replace_folder,
    write_text,
)
from elmokit.io.lock import LOCK, lock_folder
from elmokit.io.progress import DelayedProgress

VERSION = 2
"""Layout of the folder; a job of another version cannot be resumed."""

# "vectors" is the checksum of the text's vectors. "all" continues the checksum of the entry before
# with the other three numbers and the text, so it also protects the index.
_ENTRY = np.dtype([("tokens", "<u4"), ("bytes", "<u4"), ("vectors", "<u4"), ("all", "<u4")])
_SETTINGS = "settings.json"
_ENTRIES_AT_ONCE = 4096
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


@dataclass(frozen=True)
class _End:
    """Where the finished texts end."""

    texts: int = 0
    tokens: int = 0
    bytes: int = 0
    """Of all texts."""
    checksum: int = 0
    """Of the last entry."""

    def after(self, entries: Array) -> _End:
        """The end once the texts of some more entries are finished."""
        if not len(entries):
            return self
        n_tokens, n_bytes = (int(entries[name].sum(dtype=np.int64)) for name in ("tokens", "bytes"))
        return _End(
            self.texts + len(entries),
            self.tokens + n_tokens,
            self.bytes + n_bytes,
            int(entries["all"][-1]),
        )


class Job:
    """Texts finished so far. Use :func:`open_job` to start or resume one.

    Args:
        output: The file or folder that the job makes.
        layout: The form of the arrays.
        settings: Everything that the vectors depend on.
    """

    FILES = ("vectors", "texts", "index")

    def __init__(self, output: Path, layout: Layout, settings: dict[str, Any]) -> None:
        self.output, self.folder = output, _partial(output)
        self.layout, self.settings = layout, settings
        self._end = _End()
        self._files: dict[str, BinaryIO] = {}

    def __len__(self) -> int:
        """Number of finished texts."""
        return self._end.texts

    @property
    def n_tokens(self) -> int:
        """Tokens of all finished texts."""
        return self._end.tokens

    def lengths(self) -> list[int]:
        """The number of tokens of each finished text."""
        return [tokens for tokens, *_ in self._index()]

    def _index(self) -> Iterator[tuple[int, int, int, int]]:
        """The index entry of each finished text."""
        with open(self.folder / "index", "rb") as file:
            for first in range(0, len(self), _ENTRIES_AT_ONCE):
                n = min(_ENTRIES_AT_ONCE, len(self) - first)
                raw = file.read(n * _ENTRY.itemsize)
                if len(raw) < n * _ENTRY.itemsize:
                    raise self._damaged("index", first + 1)
                yield from np.frombuffer(raw, _ENTRY).tolist()

    def texts(self) -> Iterator[str]:
        """All finished texts, in order."""
        for text, *_ in self._texts():
            yield text

    def __iter__(self) -> Iterator[tuple[str, Array]]:
        """All finished texts and their arrays, in order, one at a time in memory."""
        with open(self.folder / "vectors", "rb") as file:
            for number, (text, n_tokens, checksum) in enumerate(self._texts(), 1):
                raw = file.read(n_tokens * self.layout.token_bytes)
                if zlib.crc32(raw) != checksum:
                    raise self._damaged("vectors", number)
                shape = self.layout.shape(n_tokens)
                yield text, np.frombuffer(raw, self.layout.dtype).reshape(shape)

    def _texts(self) -> Iterator[tuple[str, int, int]]:
        """Every finished text, with the number of its tokens and the checksum of its vectors."""
        checksum = 0
        with open(self.folder / "texts", "rb") as file:
            for number, (n_tokens, n_bytes, vectors, expected) in enumerate(self._index(), 1):
                raw = file.read(n_bytes)
                checksum = _checksum(n_tokens, n_bytes, vectors, raw, checksum)
                if checksum != expected:
                    raise self._damaged("texts", number)
                yield raw.decode("utf-8", "surrogatepass"), n_tokens, vectors

    def _damaged(self, name: str, number: int) -> OutputError:
        return OutputError(
            f"{self.folder / name} was damaged on disk at text {number}; pass resume=True to "
            "compute it again"
        )

    # Work

    def run(
        self,
        texts: Iterable[str],
        unit: str,
        encode: Callable[[Iterator[str], Sequence[int]], Iterable[Array]],
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Compute the arrays of the texts that are not finished, and append both to the job.

        If this is interrupted, all arrays that ``encode`` has returned are kept.

        Args:
            texts: All texts of the job, from the first. Finished ones must not have changed.
            unit: What a text is called in errors, as "line".
            encode: Takes all texts, and the number of tokens of each finished one. Yields one array
                for each of the others, in order. It may read several texts ahead.
            advance: Called with the number of texts appended.
        """
        n_done = len(self)
        waiting: deque[str] = deque()  # read by encode, but without an array yet
        group: list[tuple[str, Array]] = []
        n_bytes, n_before = 0, len(self)  # of the group, and of the texts before it

        def reading() -> Iterator[str]:
            for number, text in enumerate(self._unchanged(texts, unit), 1):
                if number > n_done:
                    waiting.append(text)
                yield text

        n_shown = n_done
        try:
            for array in encode(reading(), self.lengths()):
                group.append((waiting.popleft(), array))
                n_bytes += array.nbytes
                # if none is waiting, encode reads next, which may fail or take long
                if not waiting or n_bytes >= _GROUP_BYTES:
                    self.append(group)
                    group, n_bytes, n_before = [], 0, len(self)
                    advance(n_before - n_shown)
                    n_shown = n_before
        except OSError:  # the disk may be full
            raise
        except BaseException:  # perhaps in the middle of append, or just after it
            self.append(group[len(self) - n_before :])
            raise

    def _unchanged(self, texts: Iterable[str], unit: str) -> Iterator[str]:
        """Pass texts on, and raise if one that is finished has changed."""
        n_done, number = len(self), 0
        done = self.texts()
        for number, text in enumerate(texts, 1):
            if number <= n_done and next(done) != text:
                raise InputError(
                    f"{unit} {number} has changed since the earlier run; give the same input, "
                    f"{_OR_RESTART}"
                )
            yield text
        if number < n_done:
            raise InputError(
                f"the input has {number} {unit}s, but the earlier run finished {n_done}; give the "
                f"same input, {_OR_RESTART}"
            )

    def append(self, group: Sequence[tuple[str, Array]]) -> None:
        """Add finished texts and their arrays. When this returns, they survive a kill.

        If it is interrupted, none has been added, and it can be called again.
        """
        self._rewind()
        entries, checksum = [], self._end.checksum
        for text, array in group:
            raw, values = text.encode("utf-8", "surrogatepass"), np.ascontiguousarray(array).data
            self._files["texts"].write(raw)
            self._files["vectors"].write(values)
            entry = array.shape[-2], len(raw), zlib.crc32(values)
            checksum = _checksum(*entry, raw, checksum)
            entries.append((*entry, checksum))
        self._sync("vectors", "texts")
        added = np.array(entries, _ENTRY)
        self._files["index"].write(added.tobytes())
        self._sync("index")
        self._end = self._end.after(added)

    # The end

    @contextlib.contextmanager
    def output_file(self) -> Iterator[Path]:
        """Yield a temporary path. On success it becomes the output and the job is removed."""
        with new_file(self.output, temporary=self._new_output, then=CONTINUE) as new:
            yield new
        self.remove()

    def output_folder(self, names: Collection[str]) -> None:
        """Make the output of files in the job's folder, and remove the job.

        Args:
            names: The files.
        """
        for _ in self:  # raises if something was damaged
            pass
        self.close()
        self._new_output.mkdir()
        for name in names:
            os.replace(self.folder / name, self._new_output / name)
        replace_folder(self._new_output, self.output, old=self._old_output)
        self.remove()

    def _undo_output(self) -> None:
        """Undo what was done of :meth:`output_file` or :meth:`output_folder` before a kill."""
        if self._old_output.exists() and not self.output.exists():
            os.replace(self._old_output, self.output)
        if self._new_output.is_dir():
            for path in self._new_output.iterdir():
                os.replace(path, self.folder / path.name)
        remove_path(self._new_output)

    @property
    def _new_output(self) -> Path:
        return self.folder / "output"

    @property
    def _old_output(self) -> Path:
        return self.folder / "old"

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
        self._empty_folder()
        with contextlib.suppress(OSError):
            # the lock goes last: until then, no other process can start a job here
            (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def _empty_folder(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for path in self.folder.iterdir():
                if path.name != LOCK:
                    remove_path(path)

    # Opening

    def start(self) -> None:
        """Make an empty job, and delete what an earlier run left."""
        self._undo_output()
        self._empty_folder()
        try:
            for name in self.FILES:
                (self.folder / name).touch()
            about = {"version": VERSION, "settings": self.settings}
            write_text(self.folder / _SETTINGS, json.dumps(about))
            self._open_files()
        except BaseException:
            self.remove()
            raise

    def resume(self) -> int:
        """Continue the job of an earlier run, or start one if there is none.

        Returns:
            How many finished texts were dropped, because they or texts before them were damaged.
        """
        if not has_partial(self.output):
            self.start()
            return 0
        self._check_settings()
        self._undo_output()
        for name in self.FILES:
            (self.folder / name).touch()
        raw = (self.folder / "index").read_bytes()
        entries = np.frombuffer(raw[: len(raw) // _ENTRY.itemsize * _ENTRY.itemsize], _ENTRY)
        n_good = self._count_good(entries)
        self._end = _End().after(entries[:n_good])
        self._open_files()
        return len(entries) - n_good

    def _count_good(self, entries: Array) -> int:
        """The number of texts before the first damaged one."""
        checksum = text_end = vector_end = 0
        with (
            open(self.folder / "texts", "rb") as texts,
            open(self.folder / "vectors", "rb") as vectors,
            DelayedProgress("checking the earlier run", len(entries), "texts") as bar,
        ):
            sizes = (os.fstat(texts.fileno()).st_size, os.fstat(vectors.fileno()).st_size)
            for number, (n_tokens, n_bytes, expected, running) in enumerate(entries.tolist()):
                size = n_tokens * self.layout.token_bytes
                text_end, vector_end = text_end + n_bytes, vector_end + size
                if text_end > sizes[0] or vector_end > sizes[1]:
                    return number
                checksum = _checksum(n_tokens, n_bytes, expected, texts.read(n_bytes), checksum)
                if checksum != running or zlib.crc32(vectors.read(size)) != expected:
                    return number
                bar.advance(1)
        return len(entries)

    def _open_files(self) -> None:
        """Open the files and cut off what follows the last finished text."""
        for name in self.FILES:
            self._files[name] = open(self.folder / name, "r+b")  # noqa: SIM115
        self._rewind()
        for file in self._files.values():
            file.truncate()

    def _rewind(self) -> None:
        """Go to where the next text belongs."""
        end = self._end
        self._files["vectors"].seek(end.tokens * self.layout.token_bytes)
        self._files["texts"].seek(end.bytes)
        self._files["index"].seek(end.texts * _ENTRY.itemsize)

    def _check_settings(self) -> None:
        path = self.folder / _SETTINGS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            version, settings = found.get("version"), dict(found.get("settings", {}))
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise InputError(
                f"{path} is damaged, so the earlier run cannot be resumed; pass restart=True to "
                "start over"
            ) from None
        if version != VERSION:
            raise InputError(
                f"the earlier run to {self.output} used another version of ElmoKit; finish it with "
                f"that version, {_OR_RESTART}"
            )
        for key, value in self.settings.items():
            if settings.get(key) != value:
                # checksums say nothing to a reader
                is_checksum = re.fullmatch(r"[0-9a-f]{40,}", str(value)) is not None
                change = f"had {key} {settings.get(key)}, this one has {value}"
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
    output: Path,
    layout: Layout,
    settings: dict[str, Any],
    *,
    resume: bool,
    restart: bool,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Job]:
    """Start or resume a job, and close it at the end.

    A job that ends early stays on disk, unless no text was finished. While it is open, no other
    process can open it.

    Args:
        output: As for :class:`Job`.
        layout: As for :class:`Job`.
        settings: As for :class:`Job`.
        resume: Continue an earlier run, if there is one.
        restart: Discard an earlier run.
        say: Called with a message if part of an earlier run was damaged and must be repeated.
    """
    if resume and restart:
        raise InputError("pass resume=True or restart=True, not both")
    job = Job(output, layout, settings)
    with clear_errors(output, CONTINUE), lock_folder(job.folder, output):
        try:
            if has_partial(output) and not (resume or restart):
                raise OutputError(
                    f"an earlier run to {output} was stopped; pass resume=True to continue it, "
                    f"{_OR_RESTART}"
                )
            if not resume:
                job.start()
            elif n_damaged := job.resume():
                say(
                    f"{n_damaged:,} finished texts of the earlier run are damaged or follow a "
                    f"damaged one; they are computed again"
                )
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
    folder = _partial(output)
    vectors = folder / "vectors", folder / "output" / "vectors"  # the last, just before the end
    return (folder / _SETTINGS).is_file() and any(path.is_file() for path in vectors)


def _checksum(n_tokens: int, n_bytes: int, vectors: int, text: bytes, before: int) -> int:
    """The checksum of an entry and its text, after that of the entry before."""
    return zlib.crc32(text, zlib.crc32(struct.pack("<3I", n_tokens, n_bytes, vectors), before))


def _partial(output: Path) -> Path:
    return output.with_name(output.name + ".partial")
