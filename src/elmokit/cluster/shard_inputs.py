"""Find the text of a corpus, and cut it into ranges without reading all of it.

Plain text and JSON lines are cut at byte positions; a range owns the lines that begin in it. Their
length is estimated from the start of each file. Parquet is cut at row numbers, known from the
file's footer. A compressed file cannot be entered in the middle: it is one range.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit.cluster.shard_store import is_disk, open_place
from elmokit.errors import InputError, MissingExtraError, shortened
from elmokit.io.lines import PACKED, STANDARD_INPUT

JSON_LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")

_SAMPLE_BYTES = 1 << 16
_SAMPLED_FILES = 32  # the average of these stands for all others


@dataclass(frozen=True)
class InputFile:
    """A file of the corpus, and where it is cut."""

    path: str
    """Absolute path or URL."""
    kind: str
    """text, jsonl or parquet."""
    size: int
    """In bytes."""
    stamp: str
    """Changes when the file is written: its time, or the store's tag."""
    cuts: tuple[int, ...]
    """Where ranges start, and the end of the last: bytes, or rows for Parquet; (0, 1) for a
    compressed file as a whole."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> InputFile:
        """The file that :func:`dataclasses.asdict` described."""
        return cls(**{**values, "cuts": tuple(values["cuts"])})

    def to_dict(self) -> dict[str, Any]:
        """The file as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Range:
    """The input of one shard."""

    number: int
    """Of the shard."""
    path: str
    kind: str
    start: int
    end: int
    n_bytes: int
    """Its share of the file, which is the measure of progress."""

    @property
    def is_packed(self) -> bool:
        """Whether it is a whole compressed file."""
        return is_packed(self.path)


def ranges(files: Sequence[InputFile]) -> list[Range]:
    """The ranges of all files, in order; their numbers are those of the shards."""
    found: list[Range] = []
    for file in files:
        whole = (file.cuts[-1] - file.cuts[0]) or 1
        for start, end in zip(file.cuts, file.cuts[1:], strict=False):
            share = round(file.size * (end - start) / whole)
            found.append(Range(len(found), file.path, file.kind, start, end, share))
    return found


def find_inputs(inputs: Sequence[str | Path], shard_rows: int, text_column: str) -> list[InputFile]:
    """Find the files of a corpus, and cut them.

    Args:
        inputs: Files, folders, which stand for every file in them, and URLs of both.
        shard_rows: About how many rows a range has.
        text_column: The column of Parquet files that contains the text.
    """
    found: list[InputFile] = []
    line_bytes: dict[str, list[float]] = {"text": [], "jsonl": []}
    seen: set[str] = set()
    for given in map(str, inputs):
        for fs, path, url, info in _files(given):
            if url in seen:
                raise InputError(f"{url} is given twice; its vectors would be computed twice")
            seen.add(url)
            if info["size"] is None or info.get("partial") is False:  # of some web servers
                raise InputError(f"{url} cannot be read in parts; download it first")
            size, kind = int(info["size"]), kind_of(path)
            try:
                if kind == "parquet":
                    cuts = _row_cuts(fs, path, shard_rows, text_column)
                elif is_packed(path):
                    cuts = (0, 1)
                else:
                    cuts = _byte_cuts(fs, path, size, shard_rows, line_bytes[kind])
            except OSError as error:
                raise InputError(f"cannot read {url}: {shortened(str(error))}") from error
            found.append(InputFile(url, kind, size, _stamp(info), cuts))
    return found


def _files(given: str) -> list[tuple[Any, str, str, dict[str, Any]]]:
    """The files that a path or URL stands for: (file system, path, URL, facts about it)."""
    if Path(given) == STANDARD_INPUT:
        raise InputError("standard input (-) cannot be split into shards; give files or folders")
    fs, path = open_place(given)
    before, after = ("", "") if is_disk(fs) else _around(fs, given, path)
    fs.invalidate_cache()
    try:
        info = fs.info(path)
        if info["type"] != "directory":
            return [(fs, path, before + path + after, info)]
        inside = fs.find(path, detail=True)
    except FileNotFoundError:
        raise InputError(f"there is no file {given}; check the path") from None
    except Exception as error:  # stores have errors of their own, such as missing credentials
        raise InputError(f"cannot read {given}: {shortened(str(error))}") from error
    shown = {
        name: facts
        for name, facts in sorted(inside.items())
        if not any(part[0] in "._" for part in posixpath.relpath(name, path or "/").split("/"))
    }
    if not shown:
        raise InputError(f"the folder {given} contains no files; give text, JSON lines or Parquet")
    return [(fs, name, before + name + after, facts) for name, facts in shown.items()]


def _around(fs: Any, given: str, path: str) -> tuple[str, str]:
    """What a URL has before and after the path in its file system.

    That is s3:// for a bucket and hdfs://machine:8020 for a cluster; after the path comes the rest
    of a chain, such as ::s3://bucket/texts.zip.
    """
    password = getattr(fs, "storage_options", {}).get("password")
    if password and str(password) in given:  # the URL is written beside the vectors
        raise InputError(
            "a URL contains a password; set it in the configuration of fsspec, and leave it out of "
            "the URL"
        )
    first, chain, rest = given.partition("::")
    first = first.rstrip("/")
    own = first.removesuffix(path) if first.endswith(path) else first.partition("://")[0] + "://"
    return own, chain + rest


def kind_of(path: str) -> str:
    """What a file contains, by its suffix: text, jsonl or parquet."""
    suffixes = Path(path).suffixes
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    last = suffixes[-1].lower() if suffixes else ""
    return "jsonl" if last in JSON_LINES else "parquet" if last in PARQUET else "text"


def is_packed(path: str) -> bool:
    """Whether a file is compressed as a whole, so that it can be read only from its start."""
    return Path(path).suffix in PACKED


def _stamp(info: dict[str, Any]) -> str:
    for key in ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "mtime", "created"):
        if info.get(key):
            return str(info[key])
    return ""


def _row_cuts(fs: Any, path: str, shard_rows: int, column: str) -> tuple[int, ...]:
    with open_parquet(fs, path) as file:
        check_column(file.schema_arrow, path, column)
        n = file.metadata.num_rows
    return (*range(0, n, shard_rows), n) if n else (0,)


def _byte_cuts(
    fs: Any, path: str, size: int, shard_rows: int, known: list[float]
) -> tuple[int, ...]:
    if not size:
        return (0,)
    if len(known) < _SAMPLED_FILES:
        start: bytes = fs.cat_file(path, start=0, end=min(size, _SAMPLE_BYTES))
        own = len(start) / max(1, start.count(b"\n") + (not start.endswith(b"\n")))
        known.append(own)
    else:
        own = sum(known) / len(known)
    step = max(1, round(own * shard_rows))
    if size < 1.5 * step:  # a small rest is no shard of its own
        return (0, size)
    return (*range(0, size - step // 2, step), size)


def open_parquet(fs: Any, path: str) -> Any:
    """Open a Parquet file; raises an InputError if it is none."""
    try:
        import pyarrow
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "cluster", "reading Parquet") from None
    file = fs.open(path, "rb")
    try:
        return pq.ParquetFile(file)
    except (pyarrow.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None):  # from a disk or a network, not about the content
            raise
        raise InputError(
            f"cannot read {path}: {shortened(str(error))}; is the Parquet file complete?"
        ) from error


def check_column(schema: Any, path: str, column: str) -> None:
    """Raise if a table has no such column of strings."""
    import pyarrow.types as types

    if column not in schema.names:
        raise InputError(
            f"{path} has no column {column!r}, only {', '.join(schema.names[:8])}; choose the "
            "column with the text with text_column="
        )
    kind = schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(kind) or types.is_large_string(kind)):
        raise InputError(
            f"the column {column!r} of {path} has the type {kind}; expected strings; choose "
            "another one with text_column="
        )
