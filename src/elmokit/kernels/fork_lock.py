"""A lock that a forked process finds free."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable


class ForkLock:
    """A lock that stays usable after a fork.

    A fork copies a lock as it is. If another thread holds it at that moment, the new process has no
    thread that could release it, and would wait forever.

    Args:
        repair: A method of the lock's owner, called in the new process if the lock was held: the
            work under it is left half done. None if that does no harm.
    """

    def __init__(self, repair: Callable[[], None] | None = None) -> None:
        self._lock = threading.Lock()
        # weak, because a cycle would keep the owner in memory
        self._repair = None if repair is None else weakref.WeakMethod(repair)
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _after_fork(self) -> None:
        if self._lock.locked():
            self._lock = threading.Lock()
            repair = None if self._repair is None else self._repair()
            if repair is not None:
                repair()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_locks):
        lock._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)
