"""TensorFlow's checkpoints of version 2, read without TensorFlow.

The file ``.index`` is a table of sorted names, in the format of LevelDB: blocks of entries that
share prefixes with the entry before. A value is a protocol buffer that says where a tensor's
bytes are in the files ``.data-00000-of-00001``. Every block and every tensor has a checksum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from elmokit.errors import FormatError, UnsupportedModelError, shortened
from elmokit.formats.crc32c import masked_crc32c
from elmokit.formats.source import Source, own_errors
from elmokit.formats.tables import Stored

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_INDEX_BYTES = 1 << 20  # a hundred times that of a biLM
_MOST_TENSORS = 10_000
_LONGEST_NAME = 1000
_MOST_AXES = 8
_DTYPES = {1: "f4", 2: "f8", 19: "f2"}  # by their numbers in TensorFlow
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # how protocol buffers store a field


@dataclass(frozen=True)
class _Place:
    """Where the bytes of a tensor are."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    is_sliced: bool


class TensorBundle:
    """The tensors of a checkpoint.

    Args:
        source: Folder or archive of the files.
        prefix: The name that the files share, such as ``model.ckpt-935588``.
        files: Keeps the files with the values open.
    """

    def __init__(self, source: Source, prefix: str, files: ExitStack) -> None:
        self._source, self._prefix, self._files = source, prefix, files
        self._open: dict[str, BinaryIO] = {}
        name = prefix + ".index"
        self.label = source.label(name)
        if source.size(name) > _INDEX_BYTES:
            raise FormatError(
                f"{self.label} has {source.size(name):,} bytes, but the index of a biLM has at "
                f"most {_INDEX_BYTES:,}; use the checkpoint of a biLM"
            )
        with (
            own_errors(f"{self.label} is not a complete TensorFlow index", "copy it again"),
            source.open(name) as file,
        ):
            values = dict(_table(file.read()))
            header = _fields(values.pop("", b""))
            self._n_shards = _integer(header, 1)
            self._byte_order = ">" if _integer(header, 2) else "<"
            self._places = {name: _place(value) for name, value in values.items()}

    @property
    def names(self) -> list[str]:
        """Names of all tensors."""
        return list(self._places)

    def get(self, name: str) -> Stored | None:
        """Return a tensor, or None if there is none of this name."""
        place = self._places.get(name)
        if place is None:
            return None
        if place.is_sliced or place.dtype not in _DTYPES:
            what = "is stored in slices" if place.is_sliced else "has no float numbers"
            raise UnsupportedModelError(
                f"{self.label}: {name} {what}; save the checkpoint with whole float32 variables"
            )
        itemsize = np.dtype(_DTYPES[place.dtype]).itemsize
        if math.prod(place.shape) * itemsize != place.size:
            raise FormatError(
                f"{self.label}: {name} has {place.size:,} bytes, which does not fit its shape "
                f"{shortened(str(place.shape))}; copy the checkpoint again"
            )
        return Stored(place.shape, lambda: self._read(place, name))

    def _read(self, place: _Place, name: str) -> Tensor:
        shard = f"{self._prefix}.data-{place.shard:05d}-of-{self._n_shards:05d}"
        label = self._source.label(shard)
        if shard not in self._source:
            raise FormatError(f"{label} is missing; put it next to {self.label}")
        if place.offset + place.size > self._source.size(shard):
            raise FormatError(
                f"{label} has {self._source.size(shard):,} bytes, but {name} ends at byte "
                f"{place.offset + place.size:,}; copy the file again"
            )
        if shard not in self._open:
            self._open[shard] = self._files.enter_context(self._source.open(shard))
        data = bytearray(place.size)
        with own_errors(f"cannot read {label}", "copy the file again"):
            self._open[shard].seek(place.offset)
            n = self._open[shard].readinto(data)  # type: ignore[attr-defined]
        if n != place.size or masked_crc32c(data) != place.checksum:
            raise FormatError(
                f"{label} is damaged: the checksum of {name} differs; copy the file again"
            )
        values = np.frombuffer(data, self._byte_order + _DTYPES[place.dtype]).reshape(place.shape)
        with np.errstate(over="ignore"):  # float64 beyond float32 becomes infinite, and is refused
            return torch.from_numpy(values.astype(np.float32, copy=False))


@contextmanager
def open_bundle(source: Source, prefix: str) -> Iterator[TensorBundle]:
    """Open a checkpoint for reading."""
    with ExitStack() as files:
        yield TensorBundle(source, prefix, files)


def _table(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and values of a table in the format of LevelDB."""
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise ValueError("the mark at its end is missing")
    _, at = _handle(data, len(data) - _FOOTER)  # of a block that TensorFlow leaves empty
    index, _ = _handle(data, at)
    last, n = None, 0
    for _, value in _entries(_block(data, *index)):
        for name, content in _entries(_block(data, *_handle(value, 0)[0])):
            n += 1
            # sorted names also rule out a block that occurs again and again
            if n > _MOST_TENSORS or (last is not None and name <= last):
                raise ValueError("its names are too many or not sorted")
            last = name
            yield name.decode("utf-8"), content


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Return the offset and size of a block, and where the next value begins."""
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _block(data: bytes, offset: int, size: int) -> bytes:
    """Return the content of a block. A byte for its compression and a checksum follow it."""
    end = offset + size + 1
    if end + 4 > len(data):
        raise ValueError("a block ends behind the end of the file")
    if masked_crc32c(data[offset:end]) != int.from_bytes(data[end : end + 4], "little"):
        raise ValueError("the checksum of a block differs")
    if data[end - 1]:
        raise ValueError("a block is compressed, which TensorFlow does not do for checkpoints")
    return data[offset : end - 1]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block; at its end are offsets for searching, and their number."""
    n_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (n_restarts + 1)
    if end < 0:
        raise ValueError("a block is shorter than its directory")
    at, name = 0, b""
    while at < end:
        shared, at = _varint(block, at)
        added, at = _varint(block, at)
        size, at = _varint(block, at)
        if shared > len(name) or at + added + size > end or shared + added > _LONGEST_NAME:
            raise ValueError("an entry is longer than its block or its name")
        name = name[:shared] + block[at : at + added]
        yield name, block[at + added : at + added + size]
        at += added + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of 7 bits per byte, the lowest first, and where the next value begins."""
    number = 0
    for k, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at + k + 1
    raise ValueError("a number is cut off or has more than 64 bits")


def _fields(message: bytes) -> dict[int, list[int | bytes]]:
    """Return the values of a protocol buffer's fields by their numbers."""
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind, value = key & 7, 0
        if kind in (_VARINT, _BYTES):
            value, at = _varint(message, at)
        elif kind not in (_FIXED_32, _FIXED_64):
            raise ValueError("an entry has a field of an unknown kind")
        size = {_VARINT: 0, _BYTES: value, _FIXED_32: 4, _FIXED_64: 8}[kind]
        content = message[at : at + size]
        if len(content) < size:
            raise ValueError("an entry is cut off")
        at += size
        is_number = kind in (_FIXED_32, _FIXED_64)
        fixed = int.from_bytes(content, "little") if is_number else content
        found.setdefault(key >> 3, []).append(value if kind == _VARINT else fixed)
    return found


def _integer(fields: dict[int, list[int | bytes]], number: int) -> int:
    """Return the last value of a field, which counts; 0 if it is missing."""
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int):
        raise ValueError("an entry has bytes where a number belongs")
    return value


def _place(value: bytes) -> _Place:
    fields = _fields(value)
    shape = fields.get(2, [b""])[-1]
    dims = _fields(shape).get(2, []) if isinstance(shape, bytes) else [0]
    if len(dims) > _MOST_AXES or not all(isinstance(dim, bytes) for dim in dims):
        raise ValueError("an entry has an unusual shape")
    return _Place(
        dtype=_integer(fields, 1),
        shape=tuple(_integer(_fields(dim), 1) for dim in dims if isinstance(dim, bytes)),
        shard=_integer(fields, 3),
        offset=_integer(fields, 4),
        size=_integer(fields, 5),
        checksum=_integer(fields, 6),
        is_sliced=7 in fields,
    )
