"""Find and read text: plain, .gz, .xz or .zst files, folders of them, and standard input.

Every command reads text through this module. The reader for .zst is written by hand because the
zstandard package raises no error when a file is truncated: the end of the text would be lost
without a word.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from elmokit.errors import InputError, MissingExtraError

STANDARD_INPUT = Path("-")
"""The path that means standard input. A file of this name needs its absolute path."""

PACKED = (".gz", ".xz", ".zst")
"""Suffixes of compressed files."""

_BOM = b"\xef\xbb\xbf"
_REPORT_BYTES = 1 << 14  # progress is reported this often
_BUFFER_BYTES = 1 << 17
_LINE_BYTES = 1 << 28  # a longer line is no text


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """Resolve paths to files, in order.

    Args:
        paths: Files; folders, which stand for every file in them, sorted by name; or ``-`` for
            standard input. Hidden files in folders are skipped.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path == STANDARD_INPUT:
            if path in found:
                raise InputError("standard input (-) is given twice; it can be read only once")
            found.append(path)
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] != ".")
            if not inside:
                raise InputError(f"the folder {path} contains no files; give text files")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise InputError(
                f"there is no file {path}; check the path, or give - for standard input"
            )
    return found


def read_bytes(path: Path, advice: str = "") -> bytes:
    """The bytes of a small file.

    Args:
        path: A regular file.
        advice: The end of the error, such as "; give a file".
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"cannot read {path}: it is not a file{advice}")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}{advice}") from error


def read_lines(path: str | Path, advance: Callable[[int], None] = lambda _: None) -> Iterator[str]:
    """Read the lines of a text file, without line ends.

    The text is UTF-8; a byte order mark is removed. The suffix of the file decides whether and how
    it is decompressed. Standard input is always plain text.

    Args:
        path: The file, or ``-`` for standard input.
        advance: Called from time to time with the number of bytes read since the last call. For a
            compressed file these are compressed bytes, which add up to its size.
    """
    path = Path(path)
    name, packed = shown_path(path), _is_packed(path)
    number = unreported = position = 0
    with open_unpacked(path) as (raw, text):
        for number, line in enumerate(iter(lambda: text.readline(_LINE_BYTES), b""), 1):
            if len(line) == _LINE_BYTES:  # such as /dev/zero
                raise InputError(
                    f"line {number} of {name} is longer than {_LINE_BYTES >> 20} MiB; expected "
                    "text, with shorter lines"
                )
            unreported += len(line)
            yield decode_line(line if number > 1 else line.removeprefix(_BOM), number, name)
            if unreported >= _REPORT_BYTES:
                if packed:
                    unreported, position = raw.tell() - position, raw.tell()
                advance(unreported)
                unreported = 0
        advance(raw.tell() - position if packed else unreported)


def numbered_lines(
    path: str | Path, advance: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[int, str]]:
    """Read the lines of a file of data with their numbers from 1; see :func:`read_lines`.

    A NUL character is an error: no format of lines has one, but binary files and UTF-16 do.
    """
    for number, line in enumerate(read_lines(path, advance), 1):
        if "\0" in line:
            raise InputError(
                f"line {number} of {shown_path(path)} contains a NUL character; expected text in "
                "UTF-8; convert text in UTF-16 with: iconv -f utf-16le -t utf-8"
            )
        yield number, line


def shown_path(path: str | Path) -> str:
    """A file as an error names it."""
    return "standard input" if Path(path) == STANDARD_INPUT else str(path)


@contextlib.contextmanager
def open_unpacked(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, and raise an InputError for what goes wrong while it is read.

    Returns:
        The bytes as they are stored, whose position shows the progress, and the decompressed bytes.
    """
    name = shown_path(path)
    try:
        with _open(path) as raw:
            yield raw, unpack(path, raw)
    except FileNotFoundError:
        raise InputError(
            f"there is no file {name}; check the path, or give - for standard input"
        ) from None
    except IsADirectoryError:
        raise InputError(f"cannot read {name}: it is a folder; give a file") from None
    except Exception as error:
        damaged = (OSError, EOFError, lzma.LZMAError, zlib.error)
        if not isinstance(error, damaged) and type(error).__name__ != "ZstdError":
            raise
        reason = getattr(error, "strerror", None) or str(error)
        hint = "; is the file complete?" if _is_packed(path) else ""
        raise InputError(f"cannot read {name}: {reason}{hint}") from error


def count_lines(path: str | Path) -> int | None:
    """Count the lines of a plain file.

    Returns:
        None for standard input, compressed files and pipes, which can be counted only by reading
        all of their text.
    """
    path = Path(path)
    if path == STANDARD_INPUT or _is_packed(path) or not path.is_file():
        return None
    n, last = 0, b"\n"
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 24):
                n += block.count(b"\n")
                last = block[-1:]
    except OSError:  # read_lines will report what is wrong
        return None
    return n + (last != b"\n")


def total_bytes(files: Sequence[Path]) -> int | None:
    """Size of some files on disk, compressed as they are; None if standard input is among them."""
    if STANDARD_INPUT in files:
        return None
    return sum(file.stat().st_size for file in files)


def _is_packed(path: Path) -> bool:
    return path.suffix in PACKED


def decode_line(line: bytes, number: int, name: str) -> str:
    """A line without its end.

    Args:
        line: Its bytes, in UTF-8.
        number: The number of the line, for the error.
        name: Its file, as an error names it.
    """
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(
                f"{name} is text in UTF-16; expected UTF-8; convert it with: "
                "iconv -f utf-16 -t utf-8"
            ) from error
        raise InputError(
            f"line {number} of {name} is not UTF-8 text (byte 0x{line[error.start]:02x} at "
            f"position {error.start + 1}); convert it, for instance with: iconv -f latin1 -t utf-8"
        ) from error


def _open(path: Path) -> contextlib.AbstractContextManager[IO[bytes]]:
    if path == STANDARD_INPUT:  # not ours to close
        return contextlib.nullcontext(sys.stdin.buffer)
    return path.open("rb", 1 << 17)


def unpack(path: Path, raw: IO[bytes]) -> IO[bytes]:
    """The decompressed bytes of an open file; the suffix of its path says how."""
    if path.suffix == ".gz":
        return _buffered(gzip.open(raw))
    if path.suffix == ".xz":
        return _buffered(lzma.open(raw))
    if path.suffix == ".zst":
        return _buffered(_ZstandardReader(path, raw))
    return raw


def _buffered(file: Any) -> IO[bytes]:
    """Split lines in C; the modules for compressed files do it in Python."""
    return cast(IO[bytes], io.BufferedReader(file, _BUFFER_BYTES))


class _ZstandardReader(io.RawIOBase):
    """Decompressed bytes of a .zst file; raises EOFError if the file is truncated."""

    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError("zstandard", "zstd", f"reading {path}") from error
        self._package: Any = zstandard
        self._raw = raw
        self._frame = self._new()
        self._inside_frame = False
        self._ready = b""

    def _new(self) -> Any:
        return self._package.ZstdDecompressor().decompressobj()

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or part of it."""
        while not self._ready:
            packed = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:  # a file may hold several frames
                self._frame, self._inside_frame = self._new(), False
            packed = packed or self._raw.read(1 << 17)
            if not packed:
                if self._inside_frame:
                    raise EOFError("the file ends too early")
                return 0
            self._inside_frame = True
            self._ready = self._frame.decompress(packed)
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n
