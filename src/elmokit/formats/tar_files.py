"""The members of a tar archive: where they are and how long, read front to back and never unpacked.

Python's ``tarfile`` is not used. Before the releases of August 2024 and July 2025, a header could
make it search a pattern for hours or loop for ever. Few kinds of headers occur in archives of
models: files, folders, and long names as POSIX (pax) and GNU store them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

_BLOCK = 512
_CHUNK = 1 << 20
_LONGEST_HEADER = 1 << 16  # of a long name, or of pax records
_MOST_MEMBERS = 20_000  # a model has a dozen
_FILES, _FOLDER = (b"0", b"\0", b"7"), b"5"
_POSIX_NEXT, _GNU_NAME = b"x", b"L"  # records and name of the next member
_POSIX_ALL, _GNU_LINK = b"g", b"K"  # records of all members, and the target of a link


@dataclass(frozen=True)
class TarMember:
    """A member of a tar archive.

    Args:
        offset: Where its content begins in the unpacked archive.
        size: Bytes of its content.
        is_file: Whether it is a regular file. Links, devices and sparse files are not.
    """

    offset: int
    size: int
    is_file: bool


def tar_members(
    file: BinaryIO, check_size: Callable[[int], None]
) -> Iterator[tuple[str, TarMember]]:
    """Yield the name and place of every member that is not a folder.

    The archive is read to its end, which checks what follows as well: gzip has a checksum there.

    Args:
        file: The unpacked archive, read without seeking.
        check_size: Raises if the archive has at least so many bytes; called before they are read.

    Raises:
        ValueError: If the archive is damaged or truncated.
    """
    at, long_name, records, n_members = 0, "", dict[str, str](), 0
    while True:
        header = file.read(_BLOCK)
        at += _BLOCK
        if not header.strip(b"\0"):  # the end: zeros, or nothing at all
            break
        size, kind = _checked(header), header[156:157]
        size = int(records.get("size", size)) if kind in _FILES else size
        padded = -(-size // _BLOCK) * _BLOCK
        check_size(at + padded)
        name = records.get("path") or long_name or _short_name(header)
        if kind in (_POSIX_NEXT, _GNU_NAME):
            if size > _LONGEST_HEADER:
                raise ValueError(f"a name of {size:,} bytes")
            content = _exactly(file, padded)[:size]
            if kind == _POSIX_NEXT:
                records = _pax_records(content)
            else:
                long_name = _text(content.rstrip(b"\0"))
        else:
            n_members += 1
            if n_members > _MOST_MEMBERS:
                raise ValueError(f"more than {_MOST_MEMBERS:,} members")
            if kind not in (_FOLDER, _POSIX_ALL, _GNU_LINK):
                yield name.removeprefix("./"), TarMember(at, size, kind in _FILES)
            skip(file, padded)
            if kind not in (_POSIX_ALL, _GNU_LINK):
                long_name, records = "", {}
        at += padded
    while chunk := file.read(_CHUNK):
        at += len(chunk)
        check_size(at)


def skip(file: BinaryIO, n: int) -> None:
    """Read past bytes; raise a ValueError if the file ends before."""
    while n:
        n -= len(_exactly(file, min(n, _CHUNK)))


def _exactly(file: BinaryIO, n: int) -> bytes:
    data = file.read(n)
    if len(data) < n:
        raise ValueError("its end is missing")
    return data


def _checked(header: bytes) -> int:
    """Return the size that a header declares, after comparing the header's checksum."""
    if len(header) < _BLOCK:
        raise ValueError("its end is missing")
    without = header[:148] + b" " * 8 + header[156:]
    if _number(header[148:156]) != sum(without):
        raise ValueError("a header has another checksum than it says")
    return _number(header[124:136])


def _number(field: bytes) -> int:
    """Return a number: octal digits, or binary after a byte of 128."""
    binary = field[0] == 128
    number = int.from_bytes(field[1:], "big") if binary else int(field.strip(b" \0") or b"0", 8)
    if number < 0:
        raise ValueError("a header has a negative number")
    return number


def _short_name(header: bytes) -> str:
    name, prefix = (part.partition(b"\0")[0] for part in (header[:100], header[345:500]))
    if prefix and header[257:263] == b"ustar\0":  # GNU has times in the place of the prefix
        name = prefix + b"/" + name
    return _text(name)


def _pax_records(content: bytes) -> dict[str, str]:
    """Return records of the form ``length key=value`` and a line break."""
    records, at = {}, 0
    while at < len(content):
        digits = content[at : at + 8].partition(b" ")[0]
        length = int(digits)
        record = content[at + len(digits) + 1 : at + length]
        at += length
        if length <= len(digits) + 1 or at > len(content) or not record.endswith(b"\n"):
            raise ValueError("a header has a record of another length than it says")
        key, _, value = record[:-1].partition(b"=")
        records[_text(key)] = _text(value)
    if not records.get("size", "0").isdecimal():
        raise ValueError("a header has a size that is no number")
    return records


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
