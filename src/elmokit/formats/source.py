"""The files of a model, in a folder or in a ZIP archive."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from elmokit.errors import FormatError, ModelNotFoundError


class Source:
    """Named files of a folder, or of a folder in a ZIP archive.

    Args:
        path: The folder or archive.
        files: Path or archive member of each file, by its name relative to the folder.
        kind: "folder" or "ZIP".
    """

    def __init__(self, path: Path, files: dict[str, Path | zipfile.ZipInfo], kind: str) -> None:
        self.path, self.kind = path, kind
        self._files = files

    @property
    def names(self) -> list[str]:
        """Names of the files, without those in subfolders."""
        return [name for name in self.all_names if "/" not in name]

    @property
    def all_names(self) -> list[str]:
        """Names of all files, including those in subfolders."""
        return sorted(self._files)

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def local_path(self, name: str) -> Path | None:
        """Return the path of a file on disk, or None if it is in an archive."""
        place = self._files[name]
        return place if isinstance(place, Path) else None

    def open(self, name: str) -> BinaryIO:
        """Open a file as a seekable binary file."""
        place = self._files[name]
        try:
            if isinstance(place, Path):
                return open(place, "rb")
            with zipfile.ZipFile(self.path) as archive:
                return io.BytesIO(archive.read(place))
        except OSError as error:
            raise FormatError(f"cannot read {self.path}/{name}: {error.strerror}") from error
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise FormatError(f"{name} in {self.path} is damaged: {error}") from error
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or unusual compression
            raise FormatError(
                f"cannot unpack {name} from {self.path} ({error}); unpack the archive and give the "
                "folder"
            ) from error

    def text(self, name: str) -> str:
        """Read a UTF-8 text; names ending in .gz are decompressed."""
        with self.open(name) as file:
            return read_text(file, f"{self.path}/{name}")

    def json(self, name: str) -> dict[str, Any]:
        """Read a JSON object."""
        return parse_json(self.text(name), f"{self.path}/{name}")


def sources(path: Path) -> list[Source]:
    """Return every place where a model could be, the most likely first.

    For a folder this is the folder itself; for an archive, each of its folders from the top down.
    """
    if path.is_dir():
        try:
            found = [p for p in sorted(path.rglob("*")) if p.is_file()]
        except OSError as error:
            raise FormatError(f"cannot read {path}: {error.strerror}") from error
        return [Source(path, {p.relative_to(path).as_posix(): p for p in found}, "folder")]
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if _is_real(info)]
    except (zipfile.BadZipFile, OSError) as error:
        raise FormatError(
            f"{path} is a file but not a readable ZIP archive ({error}); give a model folder "
            "or a ZIP archive, or pass options= and weights="
        ) from error
    roots = {info.filename.rpartition("/")[0] for info in members}
    places = []
    for root in sorted(roots | {""}, key=lambda r: (r.count("/") + bool(r), r)):
        prefix = root + "/" if root else ""
        files: dict[str, Path | zipfile.ZipInfo] = {
            info.filename[len(prefix) :]: info
            for info in members
            if info.filename.startswith(prefix)
        }
        places.append(Source(path, files, "ZIP"))
    return places


def _is_real(info: zipfile.ZipInfo) -> bool:
    """Return False for folders and for the hidden files that macOS adds to archives."""
    parts = info.filename.split("/")
    return not (info.is_dir() or "__MACOSX" in parts or parts[-1].startswith("."))


def read_text(file: BinaryIO, label: str) -> str:
    """Read a UTF-8 text from an open file; labels ending in .gz are decompressed."""
    try:
        data = gzip.decompress(file.read()) if label.endswith(".gz") else file.read()
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{label} is not valid UTF-8 (byte {error.start}); save it as UTF-8"
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{label} is damaged: {error}; download it again") from error


def parse_json(text: str, label: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{label} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}); "
            "check that the download is complete"
        ) from error
    if not isinstance(values, dict):
        raise FormatError(f"{label} contains a JSON {type(values).__name__}; expected an object")
    return values


def require_file(path: str | Path, what: str) -> Path:
    """Return the path if it is an existing file; raise otherwise."""
    path = Path(path).expanduser()
    if str(path).startswith(("http:", "https:")):
        raise ModelNotFoundError(
            f"the {what} is a web address ({path}); ElmoKit does not download models, so download "
            "the file and give its path"
        )
    if not path.is_file():
        raise ModelNotFoundError(f"there is no {what} {path}; check the path")
    return path
