"""Reading text from files and folders, packed or not."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from elmokit.errors import InputError, MissingExtraError

PACKED = (".gz", ".xz", ".zst")
_TOLD = 1 << 14  # bytes after which progress is told again


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """All files meant by some paths: a folder means every file in it, in order of name."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] != ".")
            if not inside:
                raise InputError(f"there is no file in the folder {path}; give text files")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise InputError(f"there is no file {path}; give text files, or folders of them")
    return found


def read_lines(path: Path, advance: Callable[[int], None] = lambda _: None) -> Iterator[str]:
    """Lines of a text file without their ends; plain UTF-8, or packed as its suffix says.

    Args:
        path: The file.
        advance: Told now and then how many more bytes of the file, packed as it is, were read.
    """
    number = told = 0
    try:
        with path.open("rb") as raw:
            file = io.TextIOWrapper(_unpack(path, raw), "utf-8-sig", newline="\n")
            for number, line in enumerate(file, 1):  # noqa: B007, the number is told in an error
                yield line.rstrip("\r\n")
                if (read := raw.tell()) >= told + _TOLD:
                    advance(read - told)
                    told = read
            advance(raw.tell() - told)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (after line {number}: {error.reason}); convert it, for "
            "instance with iconv"
        ) from error
    except Exception as error:
        damaged = (OSError, EOFError, lzma.LZMAError, zlib.error)
        if not isinstance(error, damaged) and type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"cannot read {path}: {error}; is it complete?") from error


def _unpack(path: Path, raw: IO[bytes]) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(raw))
    if path.suffix == ".xz":
        return lzma.open(raw)
    if path.suffix == ".zst":
        return _unpack_zstandard(path, raw)
    return raw


def _unpack_zstandard(path: Path, raw: IO[bytes]) -> IO[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", "pretrain", f"reading {path}") from error
    return cast(IO[bytes], io.BufferedReader(_ZstandardReader(raw, zstandard), 1 << 20))


class _ZstandardReader(io.RawIOBase):
    """Unpacked bytes, and an error where the file ends too early, which the package lets pass."""

    def __init__(self, raw: IO[bytes], package: Any) -> None:
        self._raw, self._package = raw, package
        self._object, self._ready, self._begun = self._new(), b"", False

    def _new(self) -> Any:
        return self._package.ZstdDecompressor().decompressobj()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or part of it."""
        while not self._ready:
            packed = self._object.unused_data if self._object.eof else b""
            if self._object.eof:  # one file may hold several frames
                self._object, self._begun = self._new(), bool(packed)
            packed = packed or self._raw.read(1 << 17)
            if not packed:
                if self._begun:
                    raise EOFError("it ends too early")
                return 0
            self._begun = True
            self._ready = self._object.decompress(packed)
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n
