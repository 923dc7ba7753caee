"""Where the files of a model are: a folder, an archive, a checkpoint's name, or separate files."""

from __future__ import annotations

import gzip
import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

from elmokit.errors import ModelNotFoundError, shortened
from elmokit.formats.source import Place, Source, limit_unpacked, open_file, own_errors
from elmokit.formats.tar_files import tar_members

_LEVELS = 4  # folders within folders to look into; a model's files are at the top or just below
_ENTRIES = 20_000  # of a folder; a model has a dozen
_GZIP = b"\x1f\x8b"


def sources(path: Path) -> list[Source]:
    """Return every place where a model could be, the most likely first.

    For a folder this is the folder itself; for an archive, each of its folders from the top down.
    A file of a TensorFlow checkpoint, or the name that its files share, gives that checkpoint.
    """
    if path.is_dir():
        with own_errors(f"cannot read {path}", "check its permissions"):
            return [Source(path, dict(_files_below(path)), "folder")]
    if checkpoint := checkpoint_files(path):
        return [Source(path, checkpoint, "folder")]
    if path.suffix == ".th":  # newer ones are ZIP archives too
        return [Source(path, {"weights.th": path}, "files")]
    members: Iterable[tuple[str, Place]]
    with (
        own_errors(
            f"{path} is a file but not a readable ZIP archive",
            "give a model folder, a ZIP or tar.gz archive, or pass options= and weights=",
        ),
        open_file(path) as file,
    ):
        is_tar = file.read(2) == _GZIP
        file.seek(0)
        if not is_tar:
            with zipfile.ZipFile(file) as archive:
                members = [(info.filename, info) for info in archive.infolist()]
    if is_tar:
        members = _tar_members(path)
    folders: dict[str, dict[str, Place]] = defaultdict(dict)
    folders[""] = {}
    for name, place in members:
        parts = name.split("/")
        if len(parts) > _LEVELS + 1 or not _is_file(parts):
            continue
        for level in range(len(parts)):
            folders["/".join(parts[:level])]["/".join(parts[level:])] = place
    in_order = sorted(folders, key=lambda folder: (folder.count("/") + bool(folder), folder))
    return [Source(path, folders[folder], "tar.gz" if is_tar else "ZIP") for folder in in_order]


def _tar_members(path: Path) -> list[tuple[str, Place]]:
    packed = path.stat().st_size
    with (
        own_errors(f"{path} is not a complete tar.gz archive", "download it again"),
        open_file(path) as file,
        gzip.GzipFile(fileobj=file) as archive,
    ):
        found = tar_members(archive, lambda n: limit_unpacked(n, packed, str(path)))  # type: ignore[arg-type]
        return list(found)


def checkpoint_files(path: Path) -> dict[str, Place]:
    """Return the files of a TensorFlow checkpoint, with the options and vocabulary next to it.

    Args:
        path: One of its files, or the name that they share, such as ``model.ckpt-935588``. For
            anything else the result is empty.
    """
    name = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", path.name)
    if not path.name or not path.with_name(name + ".index").is_file():
        return {}
    with own_errors(f"cannot read {path.parent}", "check its permissions"):
        return {
            file: place
            for file, place in _files_below(path.parent, 1)
            if file.startswith(name + ".") or "vocab" in file or file.endswith("options.json")
        }


def _files_below(path: Path, levels: int = _LEVELS) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder by their relative names, a level at a time, up to a limit."""
    level, left = [""], _ENTRIES
    for _ in range(levels):
        below: list[str] = []
        for folder in level:
            # a model may have a subfolder that must not be read, but it must be readable itself
            with suppress(OSError) if folder else nullcontext(), os.scandir(path / folder) as found:
                for entry in found:
                    left -= 1
                    if left < 0:
                        return
                    file = path / folder / entry.name
                    if file.is_file():  # follows links, as downloads in a cache are links
                        yield folder + entry.name, file
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(f"{folder}{entry.name}/")
        level = below


def _is_file(parts: list[str]) -> bool:
    """Return False for folders, empty names, and the hidden files that macOS adds to archives."""
    return parts[-1] != "" and parts[-1][0] != "." and "__MACOSX" not in parts


def given_files(**paths: str | Path | None) -> Source:
    """Return separate files as a source, by the names of the arguments that gave them.

    The name of a .gz file ends in .gz too.
    """
    files: dict[str, Place] = {}
    for name, given in paths.items():
        if given is None:
            continue
        path = expanded(given)
        if str(path).startswith(("http:", "https:")):
            raise ModelNotFoundError(
                f"the {name} file is a web address ({path}); download the file and give its path"
            )
        try:
            is_file = path.is_file()
        except OSError as error:  # the name is too long, or a folder must not be read
            raise ModelNotFoundError(f"cannot read {path}: {error.strerror}") from error
        if not is_file:
            raise ModelNotFoundError(f"there is no {name} file {path}; check the path")
        files[name + ".gz" * (path.suffix == ".gz")] = path
    return Source(Path(paths["weights"] or ""), files, "files")


def expanded(path: str | Path) -> Path:
    """Return a path with ~ expanded."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # ~name without such a user
        raise ModelNotFoundError(f"there is no home folder for {shortened(str(path))}") from error
