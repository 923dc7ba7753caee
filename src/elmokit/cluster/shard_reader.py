"""Read a folder of shards: its sentences, tokens and vectors, in the order of the input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.cluster.manifest import Plan
from elmokit.cluster.shard_records import Record, read_records
from elmokit.cluster.shard_store import Store
from elmokit.embed.writers import vector_columns
from elmokit.errors import FormatError, InputError, MissingExtraError, shortened
from elmokit.io.job import Layout

Array = npt.NDArray[Any]


class ShardFolder:
    """The finished shards of a folder. Iterating gives (sentence, array) pairs.

    It looks like a job of ``elmokit embed`` to the writers of files.

    Args:
        url: A folder or URL that :func:`elmokit.cluster.embed_shards.embed_shards` has written.

    Attributes:
        plan: What was to be computed.
        records: The finished shards, by number.

    Examples:
        >>> from elmokit.cluster.shard_reader import ShardFolder
        >>> for sentence, array in ShardFolder("vectors"):  # doctest: +SKIP
        ...     print(sentence, array.shape)
    """

    def __init__(self, url: str | Path) -> None:
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError("pyarrow", "cluster", "reading shards") from None
        self._pq: Any = pq
        self.store = Store(url)
        self.plan = Plan.read(self.store)
        found = read_records(self.store)
        self.records: dict[int, Record] = {shard: found[shard] for shard in sorted(found)}

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on."""
        return self.plan.settings

    @property
    def layout(self) -> Layout:
        """The form of every array."""
        stacked = (len(self.settings["layers"]),) if self.settings["stacked"] else ()
        return Layout(stacked, self.plan.dim, self.settings["dtype"])

    @property
    def n_tokens(self) -> int:
        """Tokens of all sentences."""
        return sum(record.tokens for record in self.records.values())

    def __len__(self) -> int:
        """Number of sentences."""
        return sum(record.rows for record in self.records.values())

    def missing(self) -> list[int]:
        """The numbers of shards that are not finished."""
        return [part.number for part in self.plan.ranges() if part.number not in self.records]

    def check_complete(self) -> None:
        """Raise if shards are missing."""
        if missing := self.missing():
            raise InputError(
                f"{len(missing):,} shards of {self.store.url} are missing, the first is "
                f"{missing[0]}; finish the run with resume=True"
            )

    def columns(self) -> list[str]:
        """The names of the columns of vectors."""
        return vector_columns(self.layout, self.settings["layers"])

    def __iter__(self) -> Iterator[tuple[str, Array]]:
        for sentence, _, array in self.rows():
            yield sentence, array

    def texts(self) -> Iterator[str]:
        """All sentences, in order."""
        for table in self._tables(["sentence"]):
            yield from table.column("sentence").to_pylist()

    def rows(self, columns: list[str] | None = None) -> Iterator[tuple[str, list[str], Array]]:
        """Yield sentence, tokens and array of each row, in order.

        Args:
            columns: The columns of vectors to read; default: all of them. With one column, arrays
                are (T, D), with several, (K, T, D).
        """
        chosen = self.columns() if columns is None else columns
        stacked = len(chosen) > 1 or (columns is None and bool(self.layout.layer_shape))
        for table in self._tables(["sentence", "tokens", *chosen]):
            layers = [self._vectors(table.column(name).combine_chunks()) for name in chosen]
            sentences = table.column("sentence").to_pylist()
            tokens = table.column("tokens").to_pylist()
            start = 0
            for sentence, words in zip(sentences, tokens, strict=True):
                end = start + len(words)
                parts = [layer[start:end] for layer in layers]
                yield sentence, words, np.stack(parts) if stacked else parts[0]
                start = end

    def _vectors(self, column: Any) -> Array:
        """All vectors of a column (N, D), of one row group."""
        values = column.flatten().flatten().to_numpy(zero_copy_only=False)
        return values.reshape(-1, self.plan.dim)

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        """The row groups of all shards as tables."""
        for record in self.records.values():
            with self.open(record) as file:
                for group in range(file.metadata.num_row_groups):
                    yield file.read_row_group(group, columns=columns)

    def open(self, record: Record) -> Any:
        """Open the data of a shard as a Parquet file."""
        import pyarrow

        try:
            return self._pq.ParquetFile(self.store.open(record.file))
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise FormatError(
                f"{self.store.url}/{record.file} is damaged ({shortened(str(error))}); delete it, "
                "and compute it again with resume=True"
            ) from error
