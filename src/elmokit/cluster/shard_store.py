"""A folder on a disk or in an object store, in which every file appears complete or not at all.

On a disk, a file is written under a temporary name, and then linked or renamed. An object store
shows an object when its upload has ended. :meth:`Store.create` never replaces a file: of several
processes that create the same one, exactly one succeeds, where the file system supports it.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from elmokit.errors import InputError, OutputError, shortened

TEMPORARY = ".tmp"
"""Folder of files that are being written; readers of Parquet folders skip it."""

_ATOMIC_PUT = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory", "oci", "r2", "tos"}


class Store:
    """Files by name in one folder.

    Args:
        url: A path, or a URL that fsspec knows, such as s3://bucket/vectors.

    Attributes:
        url: The folder, absolute.
        is_local: Whether it is on a disk of this machine, or mounted like one.
    """

    def __init__(self, url: str | Path) -> None:
        self.fs, self._root = open_place(str(url))
        self.is_local = is_disk(self.fs)
        if not self.is_local and set("*?[") & set(self._root):  # patterns, when files are deleted
            raise InputError(f"{shortened(str(url))} contains *, ? or [; choose another name")
        self.url = self._root if self.is_local else str(url).rstrip("/")

    def path(self, name: str = "") -> str:
        """The full name of a file, as the file system takes it."""
        return posixpath.join(self._root, name) if name else self._root

    def local_path(self, name: str = "") -> Path:
        """The path of a file on a disk."""
        return Path(self.path(name))

    def open(self, name: str) -> IO[bytes]:
        """Open a file to read."""
        return self.fs.open(self.path(name), "rb")

    def read(self, name: str) -> bytes | None:
        """The bytes of a small file; None if there is none."""
        try:
            return bytes(self.fs.cat_file(self.path(name)))
        except FileNotFoundError:
            return None

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Names of the files in a folder, relative to the store, and their sizes."""
        found = self._entries(folder)
        # some programs make an empty object with a slash at the end for a folder
        files = (e for e in found if e["type"] == "file" and not e["name"].endswith("/"))
        return {
            posixpath.join(folder, posixpath.basename(entry["name"])): int(entry["size"] or 0)
            for entry in files
        }

    def folders(self, folder: str = "") -> list[str]:
        """Names of the folders in a folder, relative to the store."""
        found = self._entries(folder)
        names = (e["name"].rstrip("/") for e in found if e["type"] == "directory")
        return [posixpath.join(folder, posixpath.basename(name)) for name in names]

    def _entries(self, folder: str) -> list[dict[str, Any]]:
        """What a folder contains now; nothing if it does not exist."""
        self.fs.invalidate_cache()
        try:
            return list(self.fs.ls(self.path(folder), detail=True))
        except FileNotFoundError:
            return []

    def read_all(self, names: Sequence[str]) -> dict[str, bytes]:
        """The bytes of small files, many at a time; those that do not exist are left out."""
        paths = [self.path(name) for name in names]
        contents = self.fs.cat_ranges(paths, None, None, on_error="return") if paths else []
        found = {}
        for name, content in zip(names, contents, strict=True):
            if isinstance(content, FileNotFoundError):
                continue
            if isinstance(content, Exception):
                raise content
            found[name] = bytes(content)
        return found

    @contextlib.contextmanager
    def new_file(self) -> Iterator[Path]:
        """Yield the path of a temporary file on a disk, and remove it at the end if it exists.

        It is on the disk of the store if that is one, and else where this machine keeps temporary
        files.
        """
        if self.is_local:
            folder = self.local_path(TEMPORARY)
            folder.mkdir(parents=True, exist_ok=True)
        else:
            folder = Path(tempfile.gettempdir())
        path = folder / f"elmokit-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def publish(self, file: Path, name: str) -> None:
        """Give a finished file of :meth:`new_file` its name. An existing file is replaced."""
        if self.is_local:
            _sync(file)
            self.local_path(name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, self.path(name))
        elif _protocol(self.fs) in _ATOMIC_PUT:
            self.fs.put_file(str(file), self.path(name))
        else:  # such as HDFS, where a file is visible while it is written
            temporary = self.path(f"{TEMPORARY}/{uuid.uuid4().hex}")
            self.fs.makedirs(posixpath.dirname(temporary), exist_ok=True)
            self.fs.makedirs(posixpath.dirname(self.path(name)), exist_ok=True)
            self.fs.put_file(str(file), temporary)
            with contextlib.suppress(FileNotFoundError):
                self.fs.rm_file(self.path(name))
            self.fs.mv(temporary, self.path(name))

    def replace(self, name: str, data: bytes) -> None:
        """Write a small file. An existing one is replaced."""
        with self.new_file() as file:
            file.write_bytes(data)
            self.publish(file, name)

    def create(self, name: str, data: bytes) -> bool:
        """Write a small file, unless it exists; returns whether it was written."""
        if self.is_local:
            return self._link(name, data)
        try:
            with self.fs.open(self.path(name), "xb") as file:
                file.write(data)
            return True
        except FileExistsError:
            return False
        except (ValueError, NotImplementedError):  # this file system has no conditional put
            if self.fs.exists(self.path(name)):
                return False
            self.replace(name, data)
            return True

    def _link(self, name: str, data: bytes) -> bool:
        with self.new_file() as file:
            file.write_bytes(data)
            _sync(file)
            self.local_path(name).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file, self.path(name))
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                if self.local_path(name).exists():
                    return False
                os.replace(file, self.path(name))
            return True

    def remove(self, name: str) -> None:
        """Delete a file or a folder, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self.fs.rm(self.path(name), recursive=True)

    def remove_files(self, names: Iterable[str]) -> None:
        """Delete files, many at a time."""
        if paths := [self.path(name) for name in names]:
            self.fs.rm(paths)

    def remove_folder_if_empty(self, name: str) -> None:
        """Delete a folder on a disk that nothing is in; object stores have no folders."""
        if self.is_local:
            with contextlib.suppress(OSError):
                self.local_path(name).rmdir()


def open_place(url: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path in it."""
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(url) if "://" not in url else url)
    except ImportError as error:
        protocol = url.split("://")[0]
        raise InputError(
            f"reading and writing {protocol}:// needs another package ({shortened(str(error))})"
        ) from None
    except ValueError as error:
        raise InputError(
            f"{shortened(url)} is no path or URL that fsspec knows ({shortened(str(error))}); give "
            "a path, or a URL such as s3://bucket/folder"
        ) from None
    return fs, os.path.abspath(path) if is_disk(fs) else str(path).rstrip("/")


def is_disk(fs: Any) -> bool:
    """Whether a file system is that of this machine."""
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(fs, LocalFileSystem)


def check_parent(store: Store) -> None:
    """Raise if a folder on a disk cannot be made, before any work is done."""
    path = store.local_path()
    if path.exists() and not path.is_dir():
        raise OutputError(f"cannot write into {path}: it is a file; give the name of a folder")
    if not path.parent.is_dir():
        raise OutputError(
            f"cannot write {path}: the folder {path.parent} does not exist; create it first"
        )


def _protocol(fs: Any) -> str:
    return fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]


def _sync(path: Path) -> None:
    """Put a file on the disk itself: it must be there before the record that counts it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
