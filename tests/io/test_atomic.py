"""Atomic writing: what is left after success, and after each kind of failure."""

import errno

import pytest

from elmokit.errors import OutputError
from elmokit.io.atomic import (
    CONTINUE,
    check_folder,
    check_place,
    clear_errors,
    new_file,
    new_folder,
    replace_folder,
    write_text,
)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_new_file(tmp_path):
    path = tmp_path / "a.png"
    with new_file(path) as new:
        assert new.suffix == ".png"
        assert new.parent == tmp_path
        new.write_bytes(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.png"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("fixed", [False, True])
def test_a_failure_leaves_the_old_file(tmp_path, error, fixed):
    path = tmp_path / "a"
    path.write_text("old")
    temporary = tmp_path / "a.new" if fixed else None
    with pytest.raises(error), new_file(path, temporary=temporary) as new:
        assert not fixed or new == temporary
        new.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_file_that_was_not_written(tmp_path):
    with pytest.raises(OutputError, match="cannot write"), new_file(tmp_path / "a"):
        pass
    assert names(tmp_path) == []


def test_a_fixed_name_is_used_again(tmp_path):
    """A killed process leaves one temporary file at most."""
    (tmp_path / "a.new").write_text("left by a kill")
    write_text(tmp_path / "a", "é\n", temporary=tmp_path / "a.new")
    assert (tmp_path / "a").read_bytes() == "é\n".encode()
    assert names(tmp_path) == ["a"]


def test_a_full_disk(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(OutputError, match="no space left.*continue with resume=True"),
        new_file(tmp_path / "a", then=CONTINUE),
    ):
        raise full
    with pytest.raises(OutputError, match="free some space and run again"), clear_errors(tmp_path):
        raise full
    with pytest.raises(OutputError, match="no space left"), clear_errors(tmp_path / "a"):
        raise OSError("Can't write data (file write failed: errno = 28, error message = …)")


def test_errors_that_nobody_expected(tmp_path):
    with pytest.raises(OutputError, match="cannot write .*: .*too hot"), clear_errors(tmp_path):
        raise OSError(errno.EIO, "too hot")


def test_no_folder_to_write_in(tmp_path):
    path = tmp_path / "no" / "a"
    for attempt in (
        lambda: write_text(path, ""),
        lambda: check_place(path),
        lambda: check_folder(path, False, ()),
        lambda: new_folder(path, False, ()).__enter__(),
    ):
        with pytest.raises(OutputError, match="the folder .*no does not exist; create it first"):
            attempt()
    with pytest.raises(OutputError, match="it is a folder"):
        check_place(tmp_path)


def test_a_new_folder(tmp_path):
    path = tmp_path / "a"
    with new_folder(path, False, ()) as new:
        (new / "x").touch()
    assert names(path) == ["x"]
    with pytest.raises(OutputError, match="exists already; .* pass overwrite=True"):
        new_folder(path, False, ["x"]).__enter__()
    with pytest.raises(OutputError, match="other files, which would be lost: x"):
        new_folder(path, True, ["y"]).__enter__()
    with new_folder(path, True, ["x"]) as new:
        (new / "y").touch()
    assert names(path) == ["y"]
    with pytest.raises(KeyboardInterrupt), new_folder(path, True, ["y"]) as new:
        (new / "z").touch()
        raise KeyboardInterrupt
    assert names(path) == ["y"]
    assert names(tmp_path) == ["a"]


def test_a_folder_that_cannot_be_replaced(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "file", tmp_path):
        with pytest.raises(OutputError, match="give the name of a new folder"):
            check_folder(path, True, ["file"])


def test_an_interrupt_between_two_renames(tmp_path):
    """The old folder comes back where the new one cannot take its place."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "x").touch()
    with pytest.raises(FileNotFoundError):
        replace_folder(tmp_path / "missing", tmp_path / "old")
    assert names(tmp_path / "old") == ["x"]
    assert names(tmp_path) == ["old"]


def test_a_link_to_a_folder_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with new_folder(tmp_path / "link", True, ["x"]) as new:
        (new / "y").touch()
    assert names(tmp_path / "link") == ["y"]
    assert names(tmp_path / "real") == ["x"]
    assert names(tmp_path) == ["link", "real"]
