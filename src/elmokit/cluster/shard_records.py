"""The records of shards: what was computed, and what was set aside.

A shard counts when its record exists. Several processes may compute the same shard, for instance
after a network failure: one of them creates the record, and all others delete their data.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from elmokit.cluster.shard_store import Store
from elmokit.io.progress import DelayedProgress

PLAN = "plan.json"
DATA, RECORDS = "data", "shards"

_PART = re.compile(rf"{DATA}/part-\d{{6,}}-[0-9a-f]+\.parquet")
_RECORD = re.compile(rf"{RECORDS}/(\d{{6,}})\.json")
_FAILED = re.compile(rf"{RECORDS}/\d{{6,}}\.failed\.json")
_AT_ONCE = 2000  # records


@dataclass(frozen=True)
class Record:
    """A finished shard."""

    shard: int
    file: str
    """Its data, relative to the folder."""
    source: str
    """The file it was read from."""
    start: int
    end: int
    input_sha256: str
    """Of the lines of the input, or of the texts in Parquet."""
    model: str
    """Fingerprint of the model."""
    plan: str
    """SHA-256 of plan.json: a worker of a run that was discarded may still write."""
    rows: int
    tokens: int
    bytes: int
    """Size of the data."""
    sha256: str
    """Of the data."""
    seconds: float
    worker: str
    """Name and process of the machine that computed it."""
    attempt: int
    """1 if the first attempt succeeded."""
    notes: list[str] = field(default_factory=list)
    """Warnings of the model about the text."""

    def create(self, store: Store) -> bool:
        """Write the record, unless another process has; returns whether it was written."""
        return store.create(record_name(self.shard), to_json(asdict(self)))

    def replace(self, store: Store) -> None:
        """Write the record in place of another one."""
        store.replace(record_name(self.shard), to_json(asdict(self)))


def record_name(shard: int, failed: bool = False) -> str:
    """The name of a shard's record, relative to the folder."""
    return f"{RECORDS}/{shard:06}{'.failed' if failed else ''}.json"


def read_record(store: Store, shard: int) -> Record | None:
    """The record of a shard; None if it is not finished, or its record is damaged."""
    raw = store.read(record_name(shard))
    return None if raw is None else _parse(raw)


def read_records(store: Store) -> dict[int, Record]:
    """The records of all finished shards whose data exist and have their size."""
    data, plan, found = store.sizes(DATA), plan_sha256(store), {}
    names = [name for name in store.sizes(RECORDS) if _RECORD.fullmatch(name)]
    with DelayedProgress("reading records", len(names), "shards") as bar:
        for start in range(0, len(names), _AT_ONCE):
            for name, raw in store.read_all(names[start : start + _AT_ONCE]).items():
                record = _parse(raw)
                if (
                    record is not None
                    and record_name(record.shard) == name
                    and record.plan == plan
                    and data.get(record.file) == record.bytes
                ):
                    found[record.shard] = record
            bar.advance(len(names[start : start + _AT_ONCE]))
    return found


def plan_sha256(store: Store) -> str:
    """The SHA-256 of plan.json."""
    return hashlib.sha256(store.read(PLAN) or b"").hexdigest()


def missing_records(store: Store, records: Iterable[Record]) -> list[int]:
    """The numbers of finished shards whose record or data the store does not list."""
    data, names = store.sizes(DATA), store.sizes(RECORDS)
    return sorted(
        record.shard
        for record in records
        if data.get(record.file) != record.bytes or record_name(record.shard) not in names
    )


def _parse(raw: bytes) -> Record | None:
    try:
        values = json.loads(raw)
        return Record(**{one.name: values[one.name] for one in fields(Record)})
    except (ValueError, LookupError, TypeError):
        return None


def set_aside(store: Store, shard: int, reason: str, attempts: int) -> None:
    """Note that a shard cannot be computed."""
    values = {"shard": shard, "reason": reason, "attempts": attempts}
    store.replace(record_name(shard, failed=True), to_json(values))


def shards_set_aside(store: Store) -> dict[int, str]:
    """The reasons of all shards that were set aside."""
    found = {}
    names = [name for name in store.sizes(RECORDS) if _FAILED.fullmatch(name)]
    for raw in store.read_all(names).values():
        values = json.loads(raw or b"{}")
        if "shard" in values:
            found[int(values["shard"])] = str(values["reason"])
    return dict(sorted(found.items()))


def own_data(names: Iterable[str]) -> set[str]:
    """Those of some names in data/ that runs have written."""
    return {name for name in names if _PART.fullmatch(name)}


def own_records(names: Iterable[str]) -> set[str]:
    """Those of some names in shards/ that runs have written."""
    return {name for name in names if _RECORD.fullmatch(name) or _FAILED.fullmatch(name)}


def to_json(values: dict[str, Any]) -> bytes:
    """Values as the bytes of a file."""
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()
