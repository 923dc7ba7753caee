"""Atomic writing: a failed write leaves the old file or folder in place, and no half-written one.

Every output is first written under a temporary name, then renamed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

from elmokit.errors import OutputError

CONTINUE = "continue with resume=True"
"""Value of ``then`` for work that can be resumed."""

_RUN_AGAIN = "run again"
_TEMPORARY = ".{}.{}.tmp"  # name of a folder while it is written


@contextlib.contextmanager
def new_folder(path: Path, overwrite: bool, own_names: Collection[str]) -> Iterator[Path]:
    """Yield a temporary folder. It is renamed to ``path`` on success and removed on failure.

    Args:
        path: The final name.
        overwrite: Whether an existing folder may be replaced.
        own_names: Files that an existing folder may contain. With any other file in it, the folder
            is not replaced.
    """
    check_folder(path, overwrite, own_names)
    temporary = _beside(path)
    try:
        with clear_errors(path):
            temporary.mkdir()
            yield temporary
            replace_folder(temporary, path)
    finally:
        remove_path(temporary)


def replace_folder(new: Path, path: Path, *, old: Path | None = None) -> None:
    """Rename a folder to ``path``. An existing folder there is deleted after the rename.

    Args:
        new: The folder.
        path: Its final name.
        old: The name of the existing folder between the renames, on the same file system. Default:
            a random name beside it.
    """
    old = old or _beside(path)
    try:
        if path.exists():
            os.replace(path, old)
        os.replace(new, path)
    finally:
        if old.exists() and not path.exists():  # interrupted between the two renames
            os.replace(old, path)
        else:
            remove_path(old)


@contextlib.contextmanager
def new_file(
    path: Path, *, temporary: Path | None = None, then: str = _RUN_AGAIN
) -> Iterator[Path]:
    """Yield a temporary path. It is renamed to ``path`` on success and removed on failure.

    Args:
        path: The final name.
        temporary: The temporary path, on the same file system. Pass a fixed one if only one process
            writes this file: a process that is killed repeatedly then leaves at most one temporary
            file. Default: a random name with the same suffix, in the same folder.
        then: As for :func:`clear_errors`.
    """
    if temporary is None:
        temporary = path.with_name(f".{uuid.uuid4().hex[:8]}.{path.name}")
    try:
        with clear_errors(path, then):
            yield temporary
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(
    path: Path, text: str, *, temporary: Path | None = None, then: str = _RUN_AGAIN
) -> None:
    """Write a UTF-8 file. Arguments as for :func:`new_file`."""
    with new_file(path, temporary=temporary, then=then) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


def check_place(path: Path) -> None:
    """Raise if a file cannot be written. Call it before the work rather than after.

    Args:
        path: The file. An existing file may be replaced.
    """
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder; give the name of a file")
    _check_parent(path)


def check_folder(path: Path, overwrite: bool, own_names: Collection[str]) -> None:
    """Raise if a folder cannot be written. Arguments as for :func:`new_folder`."""
    if path.exists():
        if not path.is_dir() or path.samefile(Path.cwd()):
            raise OutputError(f"cannot write {path}: give the name of a new folder")
        found = sorted(p.name for p in path.iterdir())
        if found and not overwrite:
            raise OutputError(
                f"{path} exists already; choose another folder, or pass overwrite=True to replace "
                "it"
            )
        if others := [name for name in found if name not in own_names]:
            raise OutputError(
                f"{path} contains other files, which would be lost: {', '.join(others[:3])}; "
                "choose another folder"
            )
    _check_parent(path)


@contextlib.contextmanager
def clear_errors(path: Path, then: str = _RUN_AGAIN) -> Iterator[None]:
    """Turn the operating system's errors while writing into an OutputError of one sentence.

    Args:
        path: The output, as the user knows it.
        then: What to do after freeing disk space.
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
    """Reserve disk space for an existing file to grow into; raises OSError if the disk is full.

    HDF5 crashes the whole process when a write fails on a full disk, so check before writing.
    """
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
    elif shutil.disk_usage(path.parent).free < n_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _check_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise OutputError(_sentence(path, errno.ENOENT))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(_sentence(path, errno.EACCES))


def _sentence(path: Path, number: int | None, then: str = _RUN_AGAIN) -> str | None:
    """Explain an error number; None for an unexpected one."""
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"no space left on the disk to write {path}; existing files are unchanged: free some "
            f"space and {then}"
        )
    if number == errno.ENOENT and not path.parent.is_dir():
        return f"cannot write {path}: the folder {path.parent} does not exist; create it first"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"cannot write {path}: no permission; choose another place"
    return None


def _number_in(message: str) -> int | None:
    """Find the error number in a message of HDF5, whose exceptions have no errno."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.ENOENT):
        if f"errno = {number}," in message:
            return number
    return None


def remove_leftovers(path: Path) -> None:
    """Delete the temporary folders that killed processes left while they wrote a folder.

    Call it only under a lock: other processes may be writing.
    """
    for left in path.parent.glob(_TEMPORARY.format(path.name, "*")):
        remove_path(left)


def _beside(path: Path) -> Path:
    return path.parent / _TEMPORARY.format(path.name, uuid.uuid4().hex[:8])


def remove_path(path: Path) -> None:
    """Delete a file or a folder, if it exists and can be deleted."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
