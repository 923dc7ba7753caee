"""Writing so that a failure leaves the old result in place, and no half of a new one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

from elmokit.errors import OutputError


@contextlib.contextmanager
def new_folder(path: Path, overwrite: bool, own_names: Collection[str]) -> Iterator[Path]:
    """A temporary folder, renamed to the path when all went well, else removed.

    Args:
        path: The final name.
        overwrite: Whether a folder that is there may be replaced…
        own_names: …and the files it may hold; with any other, it is left alone.
    """
    if path.exists():
        if not path.is_dir() or path.samefile(Path.cwd()):
            raise OutputError(f"cannot write {path}: give the name of a new folder")
        there = sorted(p.name for p in path.iterdir())
        if there and not overwrite:
            raise OutputError(
                f"{path} exists already; choose another folder, or say overwrite=True (--force)"
            )
        if others := [name for name in there if name not in own_names]:
            raise OutputError(
                f"{path} holds {', '.join(others[:3])}, which is no part of a model and would be "
                "lost; choose another folder"
            )
    temporary, old = _beside(path), _beside(path)
    try:
        with clear_errors(path):
            temporary.mkdir()
            yield temporary
            if path.exists():
                os.replace(path, old)
            os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if old.exists() and not path.exists():  # stopped between the two renames
            os.replace(old, path)
        elif old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 under another name, then rename it."""
    with new_file(path) as new:
        new.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary name with the same suffix, renamed to the path when all went well."""
    temporary = path.with_name(f".{uuid.uuid4().hex[:8]}.{path.name}")
    try:
        with clear_errors(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Find out before the work, not after it, that a file cannot be written.

    Args:
        path: The file; one that is there may be replaced.
    """
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise OutputError(_sentence(path, errno.ENOENT))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(_sentence(path, errno.EACCES))


@contextlib.contextmanager
def clear_errors(path: Path, then: str = "run again") -> Iterator[None]:
    """The system's errors while writing, in one sentence each.

    Args:
        path: What is being written, as the user knows it.
        then: What to do once there is room on the disk again.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        number = error.errno or _number_in(str(error))
        raise OutputError(
            _sentence(path, number, then) or f"cannot write {path}: {error}"
        ) from error


def reserve_space(path: Path, n_bytes: int) -> None:
    """Claim room on the disk for an existing file to grow into; an OSError where there is none.

    HDF5 crashes the whole process where a write fails for want of room, so that it has to be known
    beforehand.
    """
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
    elif shutil.disk_usage(path.parent).free < n_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _sentence(path: Path, number: int | None, then: str = "run again") -> str | None:
    """What an error number means; None for one that nobody thought of."""
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"there is no room on the disk to write {path}; what was there before is untouched, "
            f"so free some space and {then}"
        )
    if number == errno.ENOENT:
        return f"cannot write {path}: its folder does not exist; make it first"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"cannot write {path}: no permission; choose another place"
    return None


def _number_in(message: str) -> int | None:
    """The error number HDF5 hides in its message."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.ENOENT):
        if f"errno = {number}," in message:
            return number
    return None


def _beside(path: Path) -> Path:
    return path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
