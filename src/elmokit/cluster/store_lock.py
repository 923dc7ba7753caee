"""A lock on a folder in an object store: two runs never write to the same one.

The lock of a folder on a disk ends with its process (:mod:`elmokit.io.lock`). Object stores have no
such locks. Here, a run keeps an object named ``lock`` and writes it again every few seconds with a
higher count. A second run watches the count. If it rises, the first run is alive, and the second
one is refused. If it does not, the first run was killed, and the second one takes the lock. Clocks
of different machines are never compared.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator

from elmokit.cluster.shard_store import Store
from elmokit.errors import OutputError, shortened
from elmokit.io.lock import LOCK

BEAT_SECONDS = 15.0
"""Time between two counts."""
DEAD_AFTER_SECONDS = 60.0
"""A run whose count does not rise for this long was killed."""
SETTLE_SECONDS = 5.0
"""Longer than two runs take to write the lock when both have found it dead."""
UNREACHABLE_SECONDS = 900.0
"""A run ends if it cannot reach the store for this long."""


@contextlib.contextmanager
def lock_store(store: Store, name: str, say: Callable[[str], None]) -> Iterator[StoreLock]:
    """Hold the lock of an object store's folder, or raise if another run has it.

    Args:
        store: The folder.
        name: Of this process, for the message to another one.
        say: Called with a message if it takes a while to find out.
    """
    lock = StoreLock(store, name)
    lock.take(say)
    beating = threading.Thread(target=lock.beat, daemon=True)
    beating.start()
    try:
        yield lock
    finally:
        lock.ended.set()
        beating.join(BEAT_SECONDS)
        lock.release()


class StoreLock:
    """The lock of one run; see :func:`lock_store`."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._run = uuid.uuid4().hex
        self._count = 0
        self._lost = ""
        self._seen = time.monotonic()  # when the store last had our count
        self.ended = threading.Event()

    def check(self) -> None:
        """Raise if another run has taken the lock, which happens after a long network failure.

        While the store cannot be reached for so long that another run may take the lock, this
        waits: nothing may be decided until it is known who has it.
        """
        while time.monotonic() - self._seen > DEAD_AFTER_SECONDS * 0.75 and not self._lost:
            if time.monotonic() - self._seen > UNREACHABLE_SECONDS:
                raise OutputError(
                    f"{self._store.url} could not be reached for {UNREACHABLE_SECONDS / 60:.0f} "
                    "minutes; continue with resume=True"
                )
            time.sleep(min(1.0, BEAT_SECONDS / 3))
        if self._lost:
            raise OutputError(
                f"another run ({self._lost}) writes to {self._store.url} now; this one ends"
            )

    def take(self, say: Callable[[str], None]) -> None:
        """Create the lock, or take that of a run that was killed."""
        while not self._store.create(LOCK, self._content()):
            found = self._store.read(LOCK)
            if found is None:  # released in the meantime
                continue
            say(
                f"{self._store.url} is locked by {_owner(found)}; watching for "
                f"{DEAD_AFTER_SECONDS:.0f} s whether that run is alive"
            )
            if self._changes(found):
                raise OutputError(
                    f"another run ({_owner(found)}) is writing to {self._store.url}; wait until it "
                    "has finished, or choose another folder"
                )
            if self._store.read(LOCK) == found:
                self._store.replace(LOCK, self._content())
                time.sleep(SETTLE_SECONDS)  # of two runs that take it at once, the last one has it
                break
        self._look()
        self._seen = time.monotonic()
        self.check()

    def _changes(self, found: bytes) -> bool:
        """Whether the run with a lock counts on; False if it was killed or has released it."""
        until = time.monotonic() + DEAD_AFTER_SECONDS
        while time.monotonic() < until:
            time.sleep(min(1.0, BEAT_SECONDS / 3))
            now = self._store.read(LOCK)
            if now != found:
                return now is not None
        return False

    def beat(self) -> None:
        """Count on until the run ends."""
        while not self.ended.wait(BEAT_SECONDS) and not self._lost:
            with contextlib.suppress(Exception):  # the next count may reach the store again
                self._look()
                if not self._lost:
                    self._count += 1
                    self._store.replace(LOCK, self._content())
                    self._seen = time.monotonic()

    def release(self) -> None:
        """Delete the lock, if it is still that of this run."""
        with contextlib.suppress(Exception):  # a lock that is left behind is taken by the next run
            self._look()
            if not self._lost:
                self._store.remove(LOCK)

    def _look(self) -> None:
        """Notice that another run has the lock."""
        found = self._store.read(LOCK)
        if found is not None and _values(found).get("run") != self._run:
            self._lost = _owner(found)

    def _content(self) -> bytes:
        return json.dumps({"run": self._run, "by": self._name, "count": self._count}).encode()


def _values(content: bytes) -> dict[str, object]:
    try:
        values = json.loads(content)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _owner(content: bytes) -> str:
    return shortened(str(_values(content).get("by", "an unknown process")))
