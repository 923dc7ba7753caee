"""Read the rows of one range: their positions in the input and their texts."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol, cast

from elmokit.cluster.shard_inputs import Range, open_parquet
from elmokit.cluster.shard_store import open_place
from elmokit.errors import InputError, shown
from elmokit.io.lines import decode_line, unpack

_BOM = b"\xef\xbb\xbf"
_LINE_BYTES = 1 << 28  # a longer line is no text
_BUFFER_BYTES = 1 << 20
_ROWS_AT_ONCE = 1024


class Digest(Protocol):
    """A checksum that grows, as hashlib has them."""

    def update(self, data: bytes, /) -> None:
        """Add some bytes."""


def read_rows(part: Range, text_column: str, digest: Digest) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each row.

    The position is that of the line in its file, in bytes, or the number of the row for Parquet and
    compressed files. White space around a text is removed. Empty texts are kept; empty lines of
    JSON lines are no rows. A file that cannot be read raises OSError: another machine may read it.

    Args:
        part: What to read.
        text_column: The column, or the key of JSON lines, with the text.
        digest: Gets all bytes of the lines; of Parquet, the bytes of all texts.
    """
    fs, path = open_place(part.path)
    if part.kind == "parquet":
        yield from _parquet_rows(fs, path, part, text_column, digest)
        return
    try:
        with fs.open(path, "rb") as raw:
            lines = _packed_lines(path, raw) if part.is_packed else _lines(raw, part)
            for position, line in lines:
                digest.update(line)
                bare = line if position else line.removeprefix(_BOM)
                if part.kind == "text":
                    yield position, _decoded(bare, position, part).strip()
                elif bare.strip():
                    yield position, _json_text(bare, position, part, text_column)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"cannot read {part.path}: {error}; is the file complete?") from error


def _lines(raw: Any, part: Range) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in a range of bytes."""
    from fsspec.spec import AbstractBufferedFile  # of object stores: cannot limit a line's length

    unlimited = isinstance(raw, io.RawIOBase | AbstractBufferedFile)
    file = io.BufferedReader(raw, _BUFFER_BYTES) if unlimited else raw
    position = part.start
    if position:  # the line that the cut falls into belongs to the range before
        file.seek(position - 1)
        position += len(_line(file, part)) - 1
    else:
        file.seek(0)
    while position < part.end and (line := _line(file, part)):
        yield position, line
        position += len(line)
    if position < part.end:
        raise _shorter(part)


def _shorter(part: Range) -> InputError:
    return InputError(
        f"{part.path} is shorter than when the run was planned; give the same input, or pass "
        "restart=True to start over"
    )


def _packed_lines(path: str, raw: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    file = unpack(Path(path), raw)
    yield from enumerate(iter(lambda: file.readline(_LINE_BYTES), b""))


def _line(file: Any, part: Range) -> bytes:
    line = cast(bytes, file.readline(_LINE_BYTES))
    if len(line) == _LINE_BYTES:
        raise InputError(
            f"a line of {part.path} is longer than {_LINE_BYTES >> 20} MiB; expected text, with "
            "shorter lines"
        )
    return line


def _decoded(line: bytes, position: int, part: Range) -> str:
    if part.is_packed:
        return decode_line(line, position + 1, part.path)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"the line at byte {position:,} of {part.path} is not UTF-8 text (byte "
            f"0x{line[error.start]:02x} at position {error.start + 1}); convert it, for instance "
            "with: iconv -f latin1 -t utf-8"
        ) from error


def _json_text(line: bytes, position: int, part: Range, key: str) -> str:
    where = f"line {position + 1}" if part.is_packed else f"the line at byte {position:,}"
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(
            f"{where} of {part.path} is no JSON: {shown(line[:60])}; expected an object such as "
            f'{{"{key}": "…"}}'
        ) from None
    if not isinstance(value, dict) or key not in value:
        raise InputError(
            f"{where} of {part.path} has no key {key!r}; choose the key of the text with "
            "text_column="
        )
    return _text(value[key], f"{where} of {part.path}", key)


def _text(value: Any, where: str, column: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{column!r} in {where} is {shown(value)}; expected a string")
    # JSON can spell half of a surrogate pair, which is no text
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.strip()


def _parquet_rows(
    fs: Any, path: str, part: Range, column: str, digest: Digest
) -> Iterator[tuple[int, str]]:
    """The rows of a range, from the row groups that overlap it."""
    with open_parquet(fs, path) as file:
        first, groups, skipped = 0, [], 0
        for number in range(file.metadata.num_row_groups):
            n = file.metadata.row_group(number).num_rows
            if first < part.end and first + n > part.start:
                groups.append(number)
            elif first + n <= part.start:
                skipped = first + n
            first += n
        if first < part.end:
            raise _shorter(part)
        position = skipped
        for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=groups, columns=[column]):
            for value in batch.column(0).to_pylist():
                if part.start <= position < part.end:
                    text = _text(value, f"row {position:,} of {part.path}", column)
                    raw = text.encode()
                    digest.update(len(raw).to_bytes(8, "little") + raw)
                    yield position, text
                position += 1
            if position >= part.end:
                return
