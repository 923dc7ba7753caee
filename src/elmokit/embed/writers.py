"""File formats for the vectors of a corpus; the suffix of the output chooses one."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmokit.errors import InputError, MissingExtraError
from elmokit.io.atomic import reserve_space
from elmokit.io.job import Job
from elmokit.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class WriteOptions:
    """What the file contains besides vectors."""

    forget_sentences: bool = False
    """Leave out the sentences."""
    sentence_keys: bool = False
    """Use sentences, not line numbers, as keys."""


Tick = Callable[[int], None]
Writer = Callable[[Path, Job, Tokenizer, WriteOptions, Tick], None]


def write_hdf5(
    path: Path, job: Job, tokenizer: Tokenizer, options: WriteOptions, tick: Tick
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


def _hdf5_bytes(job: Job, options: WriteOptions) -> int:
    """Upper bound of the file's size; HDF5 adds about 370 bytes per dataset, 1,100 per group."""
    n = job.n_tokens * job.layout.token_bytes + 700 * len(job) + (1 << 16)
    if options.sentence_keys:  # each / starts a group
        return n + sum(2000 * s.count("/") + 2 * len(s.encode()) for s in job.texts())
    if options.forget_sentences:
        return n
    return n + sum(len(json.dumps(sentence)) + 20 for sentence in job.texts())


def write_npz(
    path: Path, job: Job, tokenizer: Tokenizer, options: WriteOptions, tick: Tick
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
    path: Path, job: Job, tokenizer: Tokenizer, options: WriteOptions, tick: Tick
) -> None:
    """Write one row per line: number, text, tokens, and a list of vectors for each layer."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "writing Parquet") from None
    layout = job.layout
    number_type = pa.float16() if layout.dtype == "float16" else pa.float32()
    vector_type = pa.list_(number_type, layout.dim)
    stacked = bool(layout.layer_shape)
    names = [f"layer_{k}" for k in job.settings["layers"]] if stacked else ["vectors"]
    fields = [pa.field("line", pa.int64())]
    if not options.forget_sentences:
        fields += [pa.field("sentence", pa.string()), pa.field("tokens", pa.list_(pa.string()))]
    fields += [pa.field(name, pa.list_(vector_type)) for name in names]
    schema = pa.schema(fields)

    def table(first: int, rows: list[tuple[str, Any]]) -> Any:
        columns = [pa.array(range(first, first + len(rows)), pa.int64())]
        if not options.forget_sentences:
            columns.append(pa.array([sentence for sentence, _ in rows], pa.string()))
            columns.append(pa.array([tokenizer(s) for s, _ in rows], pa.list_(pa.string())))
        lengths = [array.shape[-2] for _, array in rows]
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        for k in range(len(names)):
            parts = [array[k] if stacked else array for _, array in rows]
            flat = pa.array(np.concatenate(parts).reshape(-1), number_type)
            vectors = pa.FixedSizeListArray.from_arrays(flat, layout.dim)
            columns.append(pa.ListArray.from_arrays(offsets, vectors))
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
