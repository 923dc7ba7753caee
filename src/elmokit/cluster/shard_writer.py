"""Compute one shard: read its rows, encode them, write Parquet, and commit it with its record."""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.cluster.shard_inputs import Range
from elmokit.cluster.shard_records import DATA, Record, plan_sha256, read_record
from elmokit.cluster.shard_rows import read_rows
from elmokit.cluster.shard_store import Store
from elmokit.elmo import Elmo
from elmokit.embed.run import vector_settings
from elmokit.embed.writers import vector_columns, vector_lists, vector_type, vectors_type
from elmokit.errors import InputError, LanguageWarning, OutputError
from elmokit.inference.layers import LayerChoice, Layers
from elmokit.inference.pooling import pool
from elmokit.io.job import Layout

_GROUP_BYTES = 32 << 20  # vectors of a row group
_GROUP_ROWS = 10_000


@dataclass(frozen=True)
class ModelSpec:
    """A model that every worker can load: arguments of :meth:`elmokit.Elmo.load`."""

    model: str | None = None
    """A folder, a ZIP archive, or the name of a bundled model; at the same path on all machines."""
    options: str | None = None
    weights: str | None = None
    tokenizer: str | None = None
    device: str | None = None
    quantize: str | None = None

    def load(self, **changed: Any) -> Elmo:
        """Load the model, with some arguments changed."""
        return Elmo.load(**(vars(self) | changed))


@dataclass(frozen=True)
class ShardSpec:
    """How to compute a shard, as it is sent to every worker."""

    store: str
    model: ModelSpec
    layers: Layers
    dtype: str
    state: str
    batch_size: int | None
    text_column: str
    sentence_vectors: str | None
    """How token vectors are pooled into one per sentence; None for none."""
    settings: dict[str, Any]
    """What the vectors depend on; a worker whose model differs computes nothing."""
    plan_sha256: str
    """Of plan.json; a worker that finds another one is on a machine that does not share OUT."""


class ShardWriter:
    """Computes shards with one model.

    Args:
        spec: How.
        device: A torch device; None for the one in the spec.
    """

    def __init__(self, spec: ShardSpec, device: str | None = None) -> None:
        self._spec = spec
        self._elmo = spec.model.load(device=device or spec.model.device)
        choice = LayerChoice.parse(spec.layers, self._elmo.n_layers)
        own = vector_settings(self._elmo, choice, spec.dtype, spec.state)
        for key, value in own.items():
            if spec.settings[key] != value:
                raise InputError(
                    f"the {key} of {spec.model.model or 'the model'} on {worker_name()} differs "
                    f"from that of this run: {value}, expected {spec.settings[key]}; install the "
                    "same files on all machines"
                )
        self._layout = Layout(choice.layer_shape, self._elmo.dim, spec.dtype)
        self._names = vector_columns(self._layout, own["layers"])
        self._store = Store(spec.store)
        if not self._is_current():
            raise InputError(
                f"{worker_name()} does not see this run in {self._store.url}; choose an output "
                "that all machines share, such as a network folder or an object store"
            )

    def _is_current(self) -> bool:
        """Whether the folder is still that of this run."""
        return plan_sha256(self._store) == self._spec.plan_sha256

    def write(self, part: Range, attempt: int = 1) -> Record:
        """Compute a shard and commit it; returns its record.

        Args:
            part: Its input.
            attempt: How often it has been tried, this time included.
        """
        started = time.monotonic()
        digest = hashlib.sha256()
        with self._store.new_file() as path, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LanguageWarning)
            rows = read_rows(part, self._spec.text_column, digest)
            n_rows, n_tokens = self._write_file(path, part, rows)
            checksum, size = file_sha256(path), path.stat().st_size
            name = f"{DATA}/part-{part.number:06}-{checksum[:12]}.parquet"
            self._store.publish(path, name)
        record = Record(
            shard=part.number,
            file=name,
            source=part.path,
            start=part.start,
            end=part.end,
            input_sha256=digest.hexdigest(),
            model=self._spec.settings["model"],
            plan=self._spec.plan_sha256,
            rows=n_rows,
            tokens=n_tokens,
            bytes=size,
            sha256=checksum,
            seconds=round(time.monotonic() - started, 3),
            worker=worker_name(),
            attempt=attempt,
            notes=[str(w.message) for w in caught if issubclass(w.category, LanguageWarning)],
        )
        if not self._is_current():  # it was started again with other options
            self._store.remove(name)
            raise OutputError(f"another run writes to {self._store.url} now")
        if record.create(self._store):
            return record
        first = read_record(self._store, part.number)
        if first is None or first.plan != record.plan:  # damaged, or of a run that was discarded
            record.replace(self._store)
            return record
        # a worker that was believed dead was faster; its record stays, and so does its data
        if first.file != name:
            self._store.remove(name)
        return first

    def _write_file(
        self, path: Path, part: Range, rows: Iterator[tuple[int, str]]
    ) -> tuple[int, int]:
        schema = self._schema()
        n_rows = n_tokens = 0
        with open_parquet_writer(path, schema, self._names) as file:
            for group in self._groups(rows):
                file.write_table(self._table(part, group, schema))
                n_rows += len(group)
                n_tokens += sum(len(tokens) for _, _, tokens, _ in group)
        return n_rows, n_tokens

    def _groups(self, rows: Iterator[tuple[int, str]]) -> Iterator[list[Any]]:
        """(position, text, tokens, array) of rows, in groups of bounded size."""
        ours, theirs = itertools.tee(self._tokenized(rows))
        # a fresh cache of words for every shard: its bits depend on nothing but the shard
        arrays = self._elmo.stream(
            (tokens for _, _, tokens in theirs),
            self._spec.layers,
            dtype=self._spec.dtype,
            batch_size=self._spec.batch_size,
            state=self._spec.state,
            done=[],
        )
        group: list[Any] = []
        n_bytes = 0
        for (position, text, tokens), array in zip(ours, arrays, strict=True):
            group.append((position, text, tokens, array))
            n_bytes += array.nbytes
            if n_bytes > _GROUP_BYTES or len(group) == _GROUP_ROWS:
                yield group
                group, n_bytes = [], 0
        if group:
            yield group

    def _tokenized(self, rows: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, list[str]]]:
        for position, text in rows:
            yield position, text, self._elmo.tokenize(text)

    def _schema(self) -> Any:
        import pyarrow as pa

        fields = [
            pa.field("source", pa.string()),
            pa.field("position", pa.int64()),
            pa.field("sentence", pa.string()),
            pa.field("tokens", pa.list_(pa.string())),
        ]
        fields += [pa.field(name, vectors_type(self._layout)) for name in self._names]
        if self._spec.sentence_vectors:
            one = vector_type(self._layout)
            fields += [pa.field(f"sentence_{name}", one) for name in self._names]
        return pa.schema(fields)

    def _table(self, part: Range, group: list[Any], schema: Any) -> Any:
        import pyarrow as pa

        positions, texts, tokens, arrays = zip(*group, strict=True)
        columns = [
            pa.array([part.path] * len(group), pa.string()),
            pa.array(positions, pa.int64()),
            pa.array(texts, pa.string()),
            pa.array(tokens, pa.list_(pa.string())),
            *vector_lists(arrays, self._layout),
        ]
        if self._spec.sentence_vectors:
            both = self._elmo.config.context.bidirectional
            pooled = [pool(array, self._spec.sentence_vectors, both) for array in arrays]
            for k in range(len(self._names)):
                one = [vector[k] if self._layout.layer_shape else vector for vector in pooled]
                flat = pa.array(np.concatenate(one), schema.field(len(columns)).type.value_type)
                columns.append(pa.FixedSizeListArray.from_arrays(flat, self._layout.dim))
        return pa.Table.from_arrays(columns, schema=schema)


def open_parquet_writer(path: Path, schema: Any, names: list[str]) -> Any:
    """A writer of Parquet, with the encoding that suits vectors.

    Args:
        path: The file.
        schema: Its columns.
        names: The columns of vectors; those that end like one of them are vectors, too.
    """
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        path,
        schema,
        # byte planes apart: float16 vectors become 15% smaller instead of 8%, at the same speed
        compression="zstd",
        compression_level=1,
        use_byte_stream_split=[_leaf(f) for f in schema if f.name.endswith(tuple(names))],
        use_dictionary=["source"],
        write_statistics=["position"],
    )


def _leaf(field: Any) -> str:
    """The name of a column's numbers in Parquet, which is the path through its lists."""
    name, type_ = field.name, field.type
    while hasattr(type_, "value_type"):
        name, type_ = f"{name}.list.element", type_.value_type
    return str(name)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def worker_name() -> str:
    """Name and process number of this worker."""
    return f"{socket.gethostname()}:{os.getpid()}"
