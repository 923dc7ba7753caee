"""A lock on a folder: two processes never write to the same output.

The lock is a file ``lock`` in the folder, held by the operating system. It ends with the process,
however the process ends, so a lock is never left behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import OutputError

LOCK = "lock"
"""Name of the file in the folder."""

_held: set[int] = set()


@contextlib.contextmanager
def lock_folder(folder: Path, output: Path) -> Iterator[None]:
    """Make a folder if it does not exist, and lock it, or raise if another process has done so.

    Args:
        folder: The folder. It may be renamed or deleted while it is locked.
        output: What is written, as the user knows it, for the error.
    """
    while True:
        folder.mkdir(exist_ok=True)
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process has just deleted the folder
            continue
        try:
            _lock(handle, output)
            if _is_current(handle, folder / LOCK):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the folder was deleted or renamed in between
    _held.add(handle)
    try:
        yield
    finally:
        _held.discard(handle)
        _unlock(handle)
        os.close(handle)


def _is_current(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(handle: int, output: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return  # some network file systems have no locks
        raise OutputError(
            f"another process is writing {output}; wait until it has finished, or choose another "
            "output"
        ) from error


def _unlock(handle: int) -> None:
    """Release the lock even if a child that was forked just now still shares it."""
    if sys.platform != "win32":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


def _release_in_child() -> None:
    """A forked child, such as a data loader's, must not keep the lock when its parent dies."""
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
