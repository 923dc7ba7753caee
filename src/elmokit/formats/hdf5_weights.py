"""Datasets of an HDF5 file, read with suspicion: floats that are stored in the file itself.

HDF5 can take a dataset's values from other files, by links, external storage and virtual datasets,
and can declare terabytes in a file of a few kilobytes. None of that is a model.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.errors import FormatError, shortened
from elmokit.formats.source import Source, own_errors
from elmokit.formats.tables import Stored

_UNPACKED_RATIO = 10  # how far compression may go, beyond small datasets such as biases of zeros
_SMALL = 1 << 16
_SHUFFLE, _GZIP = h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE
_CHECKSUM = h5py.h5z.FILTER_FLETCHER32  # 4 bytes at the end of a chunk
_KNOWN_FILTERS: tuple[list[int], ...] = ([], [_SHUFFLE], [_GZIP], [_SHUFFLE, _GZIP])


class Hdf5Weights:
    """The datasets of an open HDF5 file.

    Args:
        file: The open file.
        label: Its name for errors.
    """

    def __init__(self, file: Any, label: str) -> None:
        self._file, self.label = file, label

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def get(self, name: str) -> Stored | None:
        """Return a dataset, or None if there is no such name."""
        found = self._find(name)
        if found is None:
            return None
        if not isinstance(found, h5py.Dataset):
            raise FormatError(f"{self.label}: {name} must be a dataset, but it is a group")
        plist = found.id.get_create_plist()
        if plist.get_layout() == h5py.h5d.VIRTUAL or plist.get_external_count():
            raise FormatError(
                f"{self.label}: {name} is stored in another file, which is not read; use a file "
                "that contains its weights"
            )
        if found.dtype.kind != "f" or found.dtype.itemsize > 8:
            raise FormatError(
                f"{self.label}: {name} must contain float numbers, not "
                f"{shortened(str(found.dtype))}; use a file of float32 weights"
            )
        if found.shape is None:
            raise FormatError(f"{self.label}: {name} is empty; use a complete file")
        return Stored(tuple(found.shape), lambda: self._read(found, name))

    def _find(self, name: str) -> Any:
        """Return a group or dataset, or None. Steps through groups, because links are refused."""
        place = self._file
        for part in name.split("/"):
            if not isinstance(place, h5py.Group) or not place.id.links.exists(part.encode()):
                return None
            if place.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
                raise FormatError(
                    f"{self.label}: {name} is a link, which is not followed; use a file that "
                    "contains its weights"
                )
            place = place[part]
        return place

    def _read(self, dataset: Any, name: str) -> Tensor:
        n_bytes = math.prod(dataset.shape) * dataset.dtype.itemsize
        stored = dataset.id.get_storage_size()
        packed = dataset.chunks is not None
        if packed:
            self._check_chunks(dataset, name)
        if n_bytes > (_SMALL + _UNPACKED_RATIO * stored if packed else stored):
            raise FormatError(
                f"{self.label}: {name} declares {n_bytes:,} bytes, but the file has {stored:,}; "
                "download it again"
            )
        with np.errstate(over="ignore"):  # float64 beyond float32 becomes infinite, and is refused
            return torch.from_numpy(np.asarray(dataset[()], np.float32))

    def _check_chunks(self, dataset: Any, name: str) -> None:
        """Measure the chunks. HDF5 itself unpacks whatever a chunk contains."""
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
        chunk_bytes = math.prod(dataset.chunks) * dataset.dtype.itemsize
        n_chunks = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True))
        stored = dataset.id.get_storage_size()
        packing = filters[:-1] if filters[-1:] == [_CHECKSUM] else filters
        if packing not in _KNOWN_FILTERS:
            problem = "is compressed by an unusual method"
        elif dataset.id.get_num_chunks() != n_chunks:
            problem = "has parts that were never written"
        elif chunk_bytes > _SMALL * 16 + _UNPACKED_RATIO * stored:
            problem = "has chunks larger than its values"
        elif _GZIP in packing and any(
            len(zlib.decompressobj().decompress(chunk, chunk_bytes + 1)) > chunk_bytes
            for chunk in _gzip_chunks(dataset, packing.index(_GZIP))
        ):
            problem = "has chunks that unpack to more than their size"
        else:
            return
        raise FormatError(
            f"{self.label}: {name} {problem}; if the file is genuine, rewrite it with h5repack -f "
            "NONE -l CONTI"
        )


def _gzip_chunks(dataset: Any, place: int) -> Iterator[bytes]:
    """Yield the chunks that are compressed; ``place`` is that of gzip among the filters."""
    for part in dataset.iter_chunks():
        skipped, chunk = dataset.id.read_direct_chunk(tuple(s.start for s in part))
        if not skipped >> place & 1:  # HDF5 stores what gzip cannot compress as it is
            yield chunk


@contextmanager
def open_hdf5(source: Source, name: str) -> Iterator[Hdf5Weights]:
    """Open an HDF5 file of a model for reading."""
    label = source.label(name)
    with (
        own_errors(f"{label} is not a complete HDF5 file", "download it again"),
        source.open(name) as handle,
        h5py.File(handle, "r") as file,
    ):
        yield Hdf5Weights(file, label)
