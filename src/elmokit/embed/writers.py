"""File formats for the vectors of a corpus; the suffix of the output chooses one."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np

from elmokit.errors import InputError, MissingExtraError
from elmokit.io.atomic import reserve_space
from elmokit.io.job import Layout
from elmokit.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class WriteOptions:
    """What the file contains besides vectors."""

    forget_sentences: bool = False
    """Leave out the sentences."""
    sentence_keys: bool = False
    """Use sentences, not line numbers, as keys."""


class Embedded(Protocol):
    """Finished sentences, as :class:`elmokit.io.job.Job` keeps them."""

    @property
    def layout(self) -> Layout:
        """The form of every array."""

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on."""

    @property
    def n_tokens(self) -> int:
        """Tokens of all sentences."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[str, Any]]: ...

    def texts(self) -> Iterator[str]:
        """All sentences, in order."""


Tick = Callable[[int], None]
Writer = Callable[[Path, Embedded, Tokenizer, WriteOptions, Tick], None]


def write_hdf5(
    path: Path, job: Embedded, tokenizer: Tokenizer, options: WriteOptions, tick: Tick
) -> None:
    """Write the layout of AllenNLP 0.9: one dataset per line, and sentence_to_index."""
    h5py.File(path, "w").close()
    reserve_space(path, _hdf5_bytes(job, options))
    with h5py.File(path, "r+") as file:  # closing it frees unused space
        for number, (sentence, array) in enumerate(job):
            key = sentence if options.sentence_keys else str(number)
            try:
                file.create_dataset(key, data=array)
            except (ValueError, TypeError) as error:
                if not options.sentence_keys:
                    raise
                raise InputError(
                    f"line {number + 1} cannot be a key of an HDF5 file ({error}), because / "
                    "separates groups; pass resume=True and leave out sentence_keys=True"
                ) from error
            tick(1)
        if not (options.forget_sentences or options.sentence_keys):
            index = file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())
            index[0] = _sentence_to_index(job.texts())


def _hdf5_bytes(job: Embedded, options: WriteOptions) -> int:
    """Upper bound of the file's size; HDF5 adds about 370 bytes per dataset, 1,100 per group."""
    n = job.n_tokens * job.layout.token_bytes + 700 * len(job) + (1 << 16)
    if options.sentence_keys:  # each / starts a group
        return n + sum(2000 * s.count("/") + 2 * len(s.encode()) for s in job.texts())
    if options.forget_sentences:
        return n
    return n + sum(len(json.dumps(sentence)) + 20 for sentence in job.texts())


def write_npz(
    path: Path, job: Embedded, tokenizer: Tokenizer, options: WriteOptions, tick: Tick
) -> None:
    """Write an archive for numpy.load, with the same keys as the HDF5 file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:

        def add(key: str, array: Any) -> None:
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)

        for number, (sentence, array) in enumerate(job):
            add(sentence if options.sentence_keys else str(number), array)
            tick(1)
        if not (options.forget_sentences or options.sentence_keys):
            add("sentence_to_index", np.array(_sentence_to_index(job.texts())))


def write_parquet(
    path: Path, job: Embedded, tokenizer: Tokenizer, options: WriteOptions, tick: Tick
) -> None:
    """Write one row per line: number, text, tokens, and a list of vectors for each layer."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "writing Parquet") from None
    layout = job.layout
    names = vector_columns(layout, job.settings["layers"])
    type_ = vectors_type(layout)
    fields = [pa.field("line", pa.int64())]
    if not options.forget_sentences:
        fields += [pa.field("sentence", pa.string()), pa.field("tokens", pa.list_(pa.string()))]
    fields += [pa.field(name, type_) for name in names]
    schema = pa.schema(fields)

    def table(first: int, rows: list[tuple[str, Any]]) -> Any:
        columns = [pa.array(range(first, first + len(rows)), pa.int64())]
        if not options.forget_sentences:
            columns.append(pa.array([sentence for sentence, _ in rows], pa.string()))
            columns.append(pa.array([tokenizer(s) for s, _ in rows], pa.list_(pa.string())))
        columns += vector_lists([array for _, array in rows], layout)
        return pa.Table.from_arrays(columns, schema=schema)

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        first, rows, size = 0, [], 0
        for row in job:
            rows.append(row)
            size += row[1].nbytes
            if size > 32 << 20 or len(rows) == 10_000:  # a row group
                writer.write_table(table(first, rows))
                tick(len(rows))
                first, rows, size = first + len(rows), [], 0
        if rows:
            writer.write_table(table(first, rows))
            tick(len(rows))


def vector_columns(layout: Layout, layers: Sequence[int]) -> list[str]:
    """The names of the columns of vectors: one per layer, or one for all."""
    return [f"layer_{k}" for k in layers] if layout.layer_shape else ["vectors"]


def vectors_type(layout: Layout) -> Any:
    """The Arrow type of a sentence's vectors: a list of lists of D numbers."""
    import pyarrow as pa

    return pa.list_(vector_type(layout))


def vector_type(layout: Layout) -> Any:
    """The Arrow type of one vector."""
    import pyarrow as pa

    return pa.list_(pa.float16() if layout.dtype == "float16" else pa.float32(), layout.dim)


def vector_lists(arrays: Sequence[Any], layout: Layout) -> list[Any]:
    """The arrays (T, D) or (K, T, D) of some sentences as Arrow columns, one per layer."""
    import pyarrow as pa

    lengths = [array.shape[-2] for array in arrays]
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    number_type, columns = vector_type(layout).value_type, []
    for k in range(layout.layer_shape[0] if layout.layer_shape else 1):
        parts = [array[k] if layout.layer_shape else array for array in arrays]
        flat = pa.array(np.concatenate(parts).reshape(-1), number_type)
        vectors = pa.FixedSizeListArray.from_arrays(flat, layout.dim)
        columns.append(pa.ListArray.from_arrays(offsets, vectors))
    return columns


WRITERS: dict[str, Writer] = {
    ".hdf5": write_hdf5,
    ".h5": write_hdf5,
    ".npz": write_npz,
    ".parquet": write_parquet,
}


def find_writer(path: Path, options: WriteOptions) -> Writer:
    """Choose the writer for a file, and check its requirements before any work is done."""
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(
            f"the output {path} must end in one of {', '.join(WRITERS)}, which chooses its format"
        )
    if writer is write_parquet:
        if options.sentence_keys:
            raise InputError(
                "sentence_keys=True is for HDF5 and npz; a Parquet file has a column of sentences"
            )
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise MissingExtraError("pyarrow", "parquet", "writing Parquet") from None
    return writer


def _sentence_to_index(sentences: Iterable[str]) -> str:
    """Map each sentence to the number of its last line, as JSON with strings like the keys."""
    text = io.StringIO()  # keeps a single copy of all sentences in memory
    for number, sentence in enumerate(sentences):
        text.write(f'{", " if number else "{"}{json.dumps(sentence)}: "{number}"')
    return (text.getvalue() or "{") + "}"
