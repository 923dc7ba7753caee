"""A model's files, whether they lie in a folder or in a ZIP archive."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from elmokit.errors import FormatError, ModelNotFoundError


class Source:
    """A folder or a ZIP archive seen as a flat set of named files.

    An archive whose files all lie in one folder is read as that folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._files: dict[str, Any] = {}
        if path.is_dir():
            files = [p for p in sorted(path.rglob("*")) if p.is_file()]
            self._files = {p.relative_to(path).as_posix(): p for p in files}
            return
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError) as error:
            raise FormatError(
                f"{path} is a file but not a readable ZIP archive ({error}); give a model folder, "
                "a ZIP archive, or options= and weights="
            ) from error
        members = [info for info in self._zip.infolist() if not info.is_dir()]
        roots = {info.filename.split("/")[0] + "/" for info in members}
        root = roots.pop() if len(roots) == 1 else ""
        if not all(info.filename.startswith(root) for info in members):
            root = ""
        self._files = {info.filename[len(root) :]: info for info in members}

    @property
    def kind(self) -> str:
        """Folder or ZIP."""
        return "ZIP" if self._zip is not None else "folder"

    @property
    def names(self) -> list[str]:
        """Names of all files, with / between folders."""
        return sorted(self._files)

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def local_path(self, name: str) -> Path | None:
        """Where a file lies on disk, or None inside an archive."""
        return self._files[name] if self._zip is None else None

    def open(self, name: str) -> BinaryIO:
        """A seekable binary file."""
        if self._zip is None:
            return open(self._files[name], "rb")
        try:
            return io.BytesIO(self._zip.read(self._files[name]))
        except (zipfile.BadZipFile, EOFError) as error:
            raise FormatError(f"{name} in {self.path} is damaged: {error}") from error

    def text(self, name: str) -> str:
        """A UTF-8 text, unpacked where its name ends in .gz."""
        with self.open(name) as file:
            return read_text(file, f"{self.path}/{name}")

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        return parse_json(self.text(name), f"{self.path}/{name}")


def read_text(file: BinaryIO, label: str) -> str:
    """A UTF-8 text from an open file, unpacked where its name ends in .gz."""
    try:
        data = gzip.decompress(file.read()) if label.endswith(".gz") else file.read()
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{label} is not valid UTF-8 (byte {error.start}); save it as UTF-8"
        ) from error
    except (EOFError, gzip.BadGzipFile) as error:
        raise FormatError(f"{label} is damaged: {error}; download it again") from error


def parse_json(text: str, label: str) -> dict[str, Any]:
    """A JSON object from its text."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{label} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}); "
            "check that it was downloaded whole"
        ) from error
    if not isinstance(values, dict):
        raise FormatError(f"{label} holds a JSON {type(values).__name__}; an object was expected")
    return values


def require_file(path: str | Path, what: str) -> Path:
    """A path that must be an existing file."""
    path = Path(path).expanduser()
    if str(path).startswith(("http:", "https:")):
        raise ModelNotFoundError(
            f"{what} is a web address ({path}); ElmoKit does not download, so fetch the file first "
            "and give its path"
        )
    if not path.is_file():
        raise ModelNotFoundError(f"there is no {what} {path}; check the path")
    return path
