"""The files of a model, in a folder or in an archive: the only way to their bytes.

Model files come from anywhere, so nothing here trusts them. Only regular files are opened. A folder
is listed a few levels deep. What is packed may become ten times as large, not a thousand times.
Whatever a library raises for a damaged file becomes a FormatError.
"""

from __future__ import annotations

import gzip
import io
import json
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from elmokit.errors import ElmoKitError, FormatError, OutOfMemoryError, shortened
from elmokit.formats.tar_files import TarMember, skip

JSON_BYTES = 1 << 20
"""Most bytes of a JSON file: a thousand times the size of a real config."""
_PACKED_RATIO = 10  # weights hardly compress at all, word lists by 4, indented JSON by 8
_PACKED_EXTRA = 16 << 20  # for small files that compress well
_TEXT_BYTES = 256 << 20  # thirty times the vocabulary of the Billion Word Benchmark
_KNOWN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Place = Path | zipfile.ZipInfo | TarMember
"""Where a file of a model is: on disk, or in an archive."""


@contextmanager
def own_errors(problem: str, advice: str, quote: bool = True) -> Iterator[None]:
    """Turn whatever a library raises for a damaged file into a FormatError.

    Args:
        problem: What is wrong: the beginning of the message.
        advice: What to do: its end.
        quote: Whether to quote the library. Not if it advises what is unsafe.
    """
    try:
        yield
    except ElmoKitError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(
            "the model does not fit in memory; close other programs, or choose a smaller model"
        ) from error
    except Exception as error:  # decoders of damaged files raise every class that there is
        text = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
        reason = f" ({shortened(text)})" if quote else ""
        raise FormatError(f"{problem}{reason}; {advice}") from error


def limit_unpacked(n_bytes: int, n_packed: int, label: str) -> None:
    """Raise if packed bytes would become so many that they were made to fill the memory."""
    if n_bytes > _PACKED_EXTRA + _PACKED_RATIO * n_packed:
        raise FormatError(
            f"{label} has {n_packed:,} bytes but unpacks to {n_bytes:,} or more, which no model "
            "does; if it is genuine, unpack it and give the folder"
        )


class Source:
    """Named files of a folder, or of a folder in an archive.

    Args:
        path: The folder or archive.
        files: Path or archive member of each file, by its name relative to the folder.
        kind: "folder", "ZIP", "tar.gz" or "files".
    """

    def __init__(self, path: Path, files: dict[str, Place], kind: str) -> None:
        self.path, self.kind = path, kind
        self._files = files

    @cached_property
    def names(self) -> list[str]:
        """Names of the files, without those in subfolders."""
        return [name for name in self.all_names if "/" not in name]

    @cached_property
    def all_names(self) -> list[str]:
        """Names of all files, including those in subfolders."""
        return sorted(self._files)

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def label(self, name: str) -> str:
        """Return a file's name for errors."""
        place = self._files.get(name)
        if isinstance(place, Path):
            return str(place)
        return f"{self.path}/{shortened(name)}"

    def local_path(self, name: str) -> Path | None:
        """Return the path of a file on disk, or None if it is in an archive."""
        place = self._files[name]
        return place if isinstance(place, Path) else None

    def size(self, name: str) -> int:
        """Return the number of bytes of a file, unpacked."""
        place = self._files[name]
        if isinstance(place, zipfile.ZipInfo):
            return place.file_size
        if isinstance(place, TarMember):
            return place.size
        with own_errors(f"cannot read {self.label(name)}", "check the path and its permissions"):
            return place.stat().st_size

    def open(self, name: str) -> BinaryIO:
        """Open a file as a seekable binary file."""
        place, label = self._files[name], self.label(name)
        if isinstance(place, Path):
            return open_file(place)
        if isinstance(place, TarMember):
            return self._open_tar_member(place, label)
        with own_errors(f"cannot read {self.path}", "check the path and its permissions"):
            packed = min(place.compress_size, self.path.stat().st_size)
        limit_unpacked(place.file_size, packed, label)
        if place.compress_type not in _KNOWN_METHODS:
            raise FormatError(
                f"cannot unpack {label}, which is packed by an unusual method; unpack the archive "
                "and give the folder"
            )
        with (
            own_errors(
                f"cannot unpack {label}", "download it again, or unpack it and give the folder"
            ),
            zipfile.ZipFile(self.path) as archive,
            archive.open(place) as member,
        ):
            # without the size, zipfile would unpack more than the size that was just checked
            return io.BytesIO(member.read(place.file_size))

    def _open_tar_member(self, place: TarMember, label: str) -> BinaryIO:
        if not place.is_file:
            raise FormatError(
                f"{label} is a link or a device, which is not followed; use an archive that "
                "contains the file itself"
            )
        with (
            own_errors(f"cannot unpack {label}", "download the archive again"),
            open_file(self.path) as packed,
            gzip.GzipFile(fileobj=packed) as archive,
        ):
            skip(archive, place.offset)  # type: ignore[arg-type]
            data = archive.read(place.size)
            if len(data) < place.size:
                raise ValueError("its end is missing")
            return io.BytesIO(data)

    def text(self, name: str, most: int = _TEXT_BYTES) -> str:
        """Read a UTF-8 text; names ending in .gz are decompressed."""
        label, n_bytes, data = self.label(name), self.size(name), b""
        if n_bytes <= most:
            with self.open(name) as file:
                data = file.read()
        if name.endswith(".gz"):
            allowed = min(most, _PACKED_EXTRA + _PACKED_RATIO * len(data))
            with own_errors(f"{label} is damaged", "download it again"):
                unpacked = gzip.GzipFile(fileobj=io.BytesIO(data)).read(allowed + 1)
            limit_unpacked(len(unpacked), len(data), label)
            data, n_bytes = unpacked, max(n_bytes, len(unpacked))
        if n_bytes > most:
            raise FormatError(
                f"{label} has {n_bytes:,} bytes or more, but such a file has at most {most:,}; use "
                "the file that came with the model"
            )
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{label} is not valid UTF-8 (byte {error.start}); save it as UTF-8"
            ) from error

    def lines(self, name: str, most: int) -> list[str]:
        """Read the lines of a text.

        Args:
            name: The file.
            most: Number of lines that the weights allow.
        """
        text = self.text(name)
        n = text.count("\n") + (text != "" and not text.endswith("\n"))
        if n > most:
            raise FormatError(
                f"{self.label(name)} has {n:,} lines, but the weights have {most:,} rows for them; "
                "use the files of the same model"
            )
        return text.removesuffix("\n").split("\n") if text else []

    def json(self, name: str) -> dict[str, Any]:
        """Read a JSON object."""
        label = self.label(name)
        try:
            values = json.loads(self.text(name, JSON_BYTES))
        except json.JSONDecodeError as error:
            raise FormatError(
                f"{label} is not valid JSON (line {error.lineno}, column {error.colno}: "
                f"{error.msg}); check that the download is complete"
            ) from error
        except (ValueError, RecursionError) as error:
            raise FormatError(
                f"{label} has a number of thousands of digits or is nested too deeply; use the "
                "file that came with the model"
            ) from error
        if not isinstance(values, dict):
            raise FormatError(
                f"{label} contains a JSON {type(values).__name__}; expected an object"
            )
        return values


def open_file(path: Path) -> BinaryIO:
    """Open a regular file; a pipe or a device would never end."""
    with own_errors(f"cannot read {path}", "check the path and its permissions"):
        if not stat.S_ISREG(path.stat().st_mode):
            raise FormatError(f"{path} is not a regular file; give a file, a folder or an archive")
        return open(path, "rb")
