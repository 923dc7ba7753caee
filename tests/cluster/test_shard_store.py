"""Files appear complete or not at all, and are created once."""

from concurrent.futures import ThreadPoolExecutor

import fsspec
import pytest

from elmokit.cluster.shard_store import TEMPORARY, Store
from elmokit.errors import InputError


@pytest.fixture(params=["disk", "memory"])
def store(request, tmp_path):
    if request.param == "disk":
        return Store(tmp_path / "store")
    fsspec.filesystem("memory").rm("/store", recursive=True) if fsspec.filesystem("memory").exists(
        "/store"
    ) else None
    return Store("memory://store")


def test_only_one_of_many_creates_a_file(store):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda i: store.create("a/one", b"%d" % i), range(8)))
    assert sum(made) == 1
    assert store.read("a/one") == b"%d" % made.index(True)


def test_a_file_system_without_conditional_put(store, monkeypatch):
    if store.is_local:
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(PermissionError()))
    else:
        opened = store.fs.open

        def no_exclusive(path, mode="rb", **given):
            if mode == "xb":
                raise ValueError("mode")
            return opened(path, mode, **given)

        monkeypatch.setattr(store.fs, "open", no_exclusive)
    assert store.create("one", b"first")
    assert not store.create("one", b"second")
    assert store.read("one") == b"first"


def test_files_are_listed_and_removed(store):
    store.replace("data/a", b"12")
    store.replace("data/a", b"123")
    with store.new_file() as file:
        file.write_bytes(b"1234")
        store.publish(file, "data/b")
        assert not file.exists() or not store.is_local
    assert store.sizes("data") == {"data/a": 3, "data/b": 4}
    assert set(store.folders()) - {TEMPORARY} == {"data"}
    assert store.read_all(["data/a", "data/b", "data/c"]) == {"data/a": b"123", "data/b": b"1234"}
    assert store.read_all([]) == {}
    store.remove_files(["data/a"])
    assert list(store.sizes("data")) == ["data/b"]
    store.remove("data")
    store.remove("nothing")
    assert store.sizes("data") == {}
    assert store.read("data/a") is None


def test_a_failed_write_leaves_nothing(tmp_path):
    store = Store(tmp_path / "store")
    with pytest.raises(OSError, match="full"), store.new_file() as file:
        file.write_bytes(b"half")
        raise OSError("full")
    assert list((tmp_path / "store" / TEMPORARY).iterdir()) == []


def test_names_that_are_patterns(tmp_path):
    with pytest.raises(InputError, match="choose another name"):
        Store("memory://run[1]")
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / "kept").write_text("x")
    store = Store(tmp_path / "run[1]")
    store.replace("kept", b"y")
    store.remove("kept")
    assert (tmp_path / "run1" / "kept").exists()
