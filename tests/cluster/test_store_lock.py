"""Two runs never write to the same folder of an object store."""

import threading
import time

import fsspec
import pytest

from elmokit.cluster import store_lock
from elmokit.cluster.shard_store import Store
from elmokit.cluster.store_lock import StoreLock, lock_store
from elmokit.errors import OutputError


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(store_lock, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(store_lock, "DEAD_AFTER_SECONDS", 1.0)
    monkeypatch.setattr(store_lock, "SETTLE_SECONDS", 0.3)
    place = Store("memory://locked")
    place.remove("lock")
    yield place
    place.remove("lock")


def silent(_):
    pass


def test_a_second_run_is_refused_while_the_first_one_lives(store):
    said = []
    with lock_store(store, "first:1", silent):
        with (
            pytest.raises(OutputError, match=r"another run \(first:1\) is writing to memory://"),
            lock_store(store, "second:2", said.append),
        ):
            pytest.fail("the lock was given twice")
        assert "is locked by first:1; watching for 1 s" in said[0]
    assert store.read("lock") is None
    with lock_store(store, "second:2", silent) as lock:
        lock.check()


def test_the_lock_of_a_killed_run_is_taken(store):
    StoreLock(store, "killed:1").take(silent)  # never counts on, and is never released
    with lock_store(store, "second:2", silent) as lock:
        assert b"second:2" in store.read("lock")
        lock.check()
    assert store.read("lock") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]"])
def test_a_damaged_lock_is_taken(store, content):
    store.replace("lock", content)
    with lock_store(store, "second:2", silent) as lock:
        lock.check()


def test_a_lock_that_is_released_meanwhile_is_taken_at_once(store):
    first = StoreLock(store, "first:1")
    first.take(silent)
    threading.Timer(0.1, first.release).start()
    started = time.monotonic()
    with lock_store(store, "second:2", silent):
        assert time.monotonic() - started < 0.9


def test_a_run_that_lost_its_lock_ends(store):
    with lock_store(store, "first:1", silent) as lock:
        other = StoreLock(store, "second:2")
        store.replace("lock", other._content())
        until = time.monotonic() + 10
        with pytest.raises(OutputError, match=r"another run \(second:2\) writes to"):
            while time.monotonic() < until:
                lock.check()
                time.sleep(0.02)
    assert b"second:2" in store.read("lock")  # not deleted


def test_network_failures_do_not_end_the_run(store, monkeypatch):
    failed = threading.Event()

    def unreachable(*_):
        failed.set()
        raise OSError(110, "timed out")

    with lock_store(store, "first:1", silent) as lock:
        monkeypatch.setattr(store, "replace", unreachable)
        assert failed.wait(10)
        monkeypatch.undo()
        lock.check()
    assert fsspec.filesystem("memory").exists("/locked/lock") is False


def test_one_of_two_runs_that_find_the_same_dead_lock(store):
    StoreLock(store, "killed:1").take(silent)
    runs, refused = [StoreLock(store, f"run:{i}") for i in range(2)], []

    def take(run):
        try:
            run.take(silent)
        except OutputError:
            refused.append(run)

    threads = [threading.Thread(target=take, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert len(refused) == 1


def test_nothing_is_decided_while_the_store_is_out_of_reach(store, monkeypatch):
    monkeypatch.setattr(store_lock, "UNREACHABLE_SECONDS", 1.5)

    def unreachable(*_):
        raise OSError(110, "timed out")

    with lock_store(store, "first:1", silent) as lock:
        monkeypatch.setattr(store, "replace", unreachable)
        time.sleep(0.9)
        started = time.monotonic()
        with pytest.raises(OutputError, match="could not be reached"):
            lock.check()
        assert time.monotonic() - started > 0.3
        monkeypatch.undo()
