"""Check a folder of shards, merge it into one file, and count what it contains."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.cluster.shard_reader import ShardFolder
from elmokit.cluster.shard_records import DATA, Record, shards_set_aside
from elmokit.embed.writers import WriteOptions, find_writer
from elmokit.errors import FormatError
from elmokit.io.atomic import check_place, new_file
from elmokit.io.progress import DelayedProgress
from elmokit.text.tokenizers import get_tokenizer


def verify_shards(url: str | Path) -> list[str]:
    """Compare every shard with its record.

    Returns:
        What is wrong, one sentence each: missing shards, other sizes, checksums, numbers of rows or
        tokens, and data that no record names.
    """
    folder = ShardFolder(url)
    problems: list[str] = []
    total = sum(record.bytes for record in folder.records.values())
    with DelayedProgress("checking shards", total, "bytes") as bar:
        for record in folder.records.values():
            problems += _problems(folder, record)
            bar.advance(record.bytes)
    aside = shards_set_aside(folder.store)
    problems += [
        f"shard {shard} was set aside: {aside[shard]}"
        if shard in aside
        else f"shard {shard} is missing, or its data has another size"
        for shard in folder.missing()
    ]
    named = {record.file for record in folder.records.values()}
    surplus = [name for name in folder.store.sizes(DATA) if name not in named]
    problems += [f"{name} belongs to no finished shard" for name in surplus]
    return problems


def _problems(folder: ShardFolder, record: Record) -> Iterator[str]:
    digest = hashlib.sha256()
    with folder.store.open(record.file) as file:
        while block := file.read(1 << 22):
            digest.update(block)
    if digest.hexdigest() != record.sha256:
        yield f"{record.file} is damaged: its checksum differs from that in its record"
        return
    if record.model != folder.settings["model"]:
        yield f"shard {record.shard} was computed by another model"
    try:
        with folder.open(record) as parquet:
            n_rows = parquet.metadata.num_rows
            groups = range(parquet.metadata.num_row_groups)
            names = ["position", "tokens"]
            columns = parquet.schema_arrow.names
            tables = [parquet.read_row_group(group, columns=names) for group in groups]
    except FormatError as error:
        yield str(error)
        return
    if not {"source", "sentence", *names, *folder.columns()} <= set(columns):
        yield f"{record.file} has the columns of another run: {', '.join(columns)}"
        return
    n_tokens = sum(len(words) for t in tables for words in t.column("tokens").to_pylist())
    positions = [p for table in tables for p in table.column("position").to_pylist()]
    if (n_rows, n_tokens) != (record.rows, record.tokens):
        yield (
            f"{record.file} has {n_rows:,} rows and {n_tokens:,} tokens; its record says "
            f"{record.rows:,} and {record.tokens:,}"
        )
    if positions != sorted(set(positions)):
        yield f"{record.file} has a row twice, or rows out of order"


def merge_shards(url: str | Path, output: Path) -> ShardFolder:
    """Write all shards to one file, as ``elmokit embed`` would without an engine.

    Args:
        url: The folder. All its shards must be finished.
        output: A file that ends in .hdf5, .h5, .npz or .parquet.
    """
    writer = find_writer(output, WriteOptions())
    check_place(output)
    folder = ShardFolder(url)
    folder.check_complete()
    tokenizer = get_tokenizer(folder.settings["tokenizer"])
    with DelayedProgress("writing", len(folder), "lines") as bar, new_file(output) as new:
        writer(new, folder, tokenizer, WriteOptions(), bar.advance)
    return folder


def shard_stats(url: str | Path) -> dict[str, Any]:
    """Numbers about a folder of shards, finished or not."""
    folder = ShardFolder(url)
    records = list(folder.records.values())
    tokens: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    for record in records:
        tokens[record.worker] += record.tokens
        seconds[record.worker] = seconds.get(record.worker, 0) + record.seconds
    rows = sorted(record.rows for record in records)
    n_tokens, n_bytes = folder.n_tokens, sum(record.bytes for record in records)
    return {
        "model": folder.plan.model,
        "layers": folder.settings["layers"],
        "dtype": folder.settings["dtype"],
        "dim": folder.plan.dim,
        "files": len(folder.plan.files),
        "shards": len(folder.plan.ranges()),
        "finished": len(records),
        "set aside": len(shards_set_aside(folder.store)),
        "repeated": sum(record.attempt > 1 for record in records),
        "sentences": sum(rows),
        "fewest rows of a shard": rows[0] if rows else 0,
        "most rows of a shard": rows[-1] if rows else 0,
        "tokens": n_tokens,
        "bytes": n_bytes,
        "bytes per token": round(n_bytes / n_tokens, 1) if n_tokens else 0,
        "worker seconds": round(sum(seconds.values()), 1),
        "workers": {name: round(tokens[name] / (seconds[name] or 1)) for name in sorted(tokens)},
    }
