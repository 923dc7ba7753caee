"""What a folder of shards contains: the plan, a record per finished shard, and the manifest.

::

    plan.json              what the vectors depend on, and where the input is cut
    data/part-000012-….parquet
                           the vectors of shard 12; the end of the name is its checksum
    shards/000012.json     the record of shard 12, created after its data, and never replaced
    shards/000012.failed.json
                           why shard 12 was set aside
    manifest.json          all records, and all shards set aside; written at the end
    README.md              what made the folder, and how to read it

A shard counts when its record exists. Several processes may compute the same shard, for instance
after a network failure: one of them creates the record, and all others delete their data.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from elmokit._version import __version__
from elmokit.cluster.shard_inputs import InputFile, Range, ranges
from elmokit.cluster.shard_store import TEMPORARY, Store
from elmokit.errors import FormatError, InputError
from elmokit.io.progress import DelayedProgress

VERSION = 1
PLAN, MANIFEST, README = "plan.json", "manifest.json", "README.md"
DATA, RECORDS = "data", "shards"

_PART = re.compile(rf"{DATA}/part-\d{{6,}}-[0-9a-f]+\.parquet")
_TOP = (PLAN, MANIFEST, README, "lock")
_FOLDERS = (DATA, RECORDS, TEMPORARY)
_AGAIN = "or pass restart=True to start over"
_RECORD = re.compile(rf"{RECORDS}/(\d{{6,}})\.json")
_FAILED = re.compile(rf"{RECORDS}/\d{{6,}}\.failed\.json")
_AT_ONCE = 2000  # records


@dataclass(frozen=True)
class Plan:
    """What is computed: settings of the vectors, options, and the input."""

    settings: dict[str, Any]
    """Everything that the vectors depend on, besides the text."""
    dim: int
    """Width D of the vectors."""
    model: str
    """Name or path of the model."""
    files: list[InputFile]

    def ranges(self) -> list[Range]:
        """The input of every shard."""
        return ranges(self.files)

    def write(self, store: Store) -> None:
        """Write plan.json."""
        values = {
            "version": VERSION,
            "elmokit": __version__,
            "model": self.model,
            "dim": self.dim,
            "settings": self.settings,
            "files": [file.to_dict() for file in self.files],
        }
        store.replace(PLAN, _json(values))

    @classmethod
    def read(cls, store: Store) -> Plan:
        """Read plan.json."""
        raw = store.read(PLAN)
        if raw is None:
            raise InputError(
                f"there are no shards in {store.url}: it has no {PLAN}; give a folder that "
                "elmokit embed with an engine has written"
            )
        try:
            values = json.loads(raw)
            if values["version"] != VERSION:
                raise InputError(
                    f"{store.url} was written by another version of ElmoKit ({values['elmokit']}); "
                    f"use that version, {_AGAIN}"
                )
            files = [InputFile.from_dict(file) for file in values["files"]]
            return cls(dict(values["settings"]), int(values["dim"]), values["model"], files)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise FormatError(
                f"{store.url}/{PLAN} is damaged ({str(error)[:100]}); delete the folder, and start "
                "again"
            ) from error

    def check_settings(self, settings: dict[str, Any], url: str) -> None:
        """Raise if a run with other settings wants to continue this one."""
        for key, value in settings.items():
            before = self.settings.get(key)
            if before != value:
                is_checksum = re.fullmatch(r"[0-9a-f]{40,}", str(value)) is not None
                change = f"had {key} {before}, this one has {value}"
                raise InputError(
                    f"the earlier run to {url} "
                    f"{f'used another {key}' if is_checksum else change}; use the same settings, "
                    f"{_AGAIN}"
                )

    def changed_files(self, now: Sequence[InputFile]) -> list[str]:
        """Files that may have been written since; raises if paths, sizes or cuts changed."""
        for before, found in zip(self.files, now, strict=False):
            if before.path != found.path:
                raise InputError(
                    f"the earlier run read {before.path}, where this one reads {found.path}; give "
                    f"the same inputs, {_AGAIN}"
                )
            if before.size != found.size:
                raise InputError(
                    f"{found.path} has {found.size:,} bytes, but had {before.size:,} in the "
                    f"earlier run; give the same input, {_AGAIN}"
                )
            if before.cuts != found.cuts:  # other numbers of rows, or lines of other lengths
                raise InputError(
                    f"{found.path} has changed since the earlier run: it would be cut into shards "
                    f"at other places; give the same input, {_AGAIN}"
                )
        if len(self.files) != len(now):
            raise InputError(
                f"the inputs have {len(now):,} files, but those of the earlier run had "
                f"{len(self.files):,}; give the same inputs, {_AGAIN}"
            )
        pairs = zip(self.files, now, strict=True)
        # a file system without times or tags says nothing
        return [
            found.path for before, found in pairs if before.stamp != found.stamp or not found.stamp
        ]


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
        return store.create(record_name(self.shard), _json(asdict(self)))

    def replace(self, store: Store) -> None:
        """Write the record in place of another one."""
        store.replace(record_name(self.shard), _json(asdict(self)))


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
    store.replace(record_name(shard, failed=True), _json(values))


def shards_set_aside(store: Store) -> dict[int, str]:
    """The reasons of all shards that were set aside."""
    found = {}
    names = [name for name in store.sizes(RECORDS) if _FAILED.fullmatch(name)]
    for raw in store.read_all(names).values():
        values = json.loads(raw or b"{}")
        if "shard" in values:
            found[int(values["shard"])] = str(values["reason"])
    return dict(sorted(found.items()))


def prepare_again(store: Store, finished: Iterable[int]) -> None:
    """Make a folder ready for the shards that are missing.

    Records without data, such as those a user has deleted, would keep a shard from being written;
    shards that were set aside are tried again.
    """
    kept = {record_name(shard) for shard in finished}
    store.remove_files(name for name in _own_records(store) if name not in kept)
    store.remove(TEMPORARY)


def remove_surplus(store: Store, records: Iterable[Record]) -> None:
    """Delete data that no record names, once every shard has a record or was set aside."""
    kept = {record.file for record in records}
    store.remove_files(name for name in _own_data(store) if name not in kept)
    store.remove(TEMPORARY)


def remove_all(store: Store) -> None:
    """Delete a run; files that are not ours stay.

    The plan is the last: without it, the rest would be taken for files of others.
    """
    store.remove_files([*_own_data(store), *_own_records(store)])
    store.remove(TEMPORARY)
    for name in (DATA, RECORDS):
        store.remove_folder_if_empty(name)
    for name in (MANIFEST, README, PLAN):
        store.remove(name)


def _own_data(store: Store) -> list[str]:
    return [name for name in store.sizes(DATA) if _PART.fullmatch(name)]


def _own_records(store: Store) -> list[str]:
    names = store.sizes(RECORDS)
    return [name for name in names if _RECORD.fullmatch(name) or _FAILED.fullmatch(name)]


def other_files(store: Store) -> list[str]:
    """Files and folders here that no run has written: they must never be deleted."""
    top, data, records = store.sizes(), store.sizes(DATA), store.sizes(RECORDS)
    found = {name for name in top if name not in _TOP}
    found |= {name for name in store.folders() if name not in _FOLDERS}
    found |= {name for folder in (DATA, RECORDS) for name in store.folders(folder)}
    found |= set(data) - set(_own_data(store)) | set(records) - set(_own_records(store))
    if not _is_plan(store.read(PLAN)):  # then nothing here is a run's
        found |= {*top, *data, *records} - {"lock"}
    return sorted(found)


def _is_plan(content: bytes | None) -> bool:
    try:
        values = json.loads(content or b"null")
    except ValueError:
        return False
    return isinstance(values, dict) and {"version", "settings", "model"} <= set(values)


def write_manifest(store: Store, plan: Plan, records: dict[int, Record]) -> None:
    """Write manifest.json and README.md from the records."""
    found = [records[shard] for shard in sorted(records)]
    aside = shards_set_aside(store)
    values = {
        "version": VERSION,
        "elmokit": __version__,
        "model": plan.model,
        "settings": plan.settings,
        "dim": plan.dim,
        "complete": len(found) == len(plan.ranges()),
        "rows": sum(record.rows for record in found),
        "tokens": sum(record.tokens for record in found),
        "bytes": sum(record.bytes for record in found),
        "set_aside": [{"shard": shard, "reason": reason} for shard, reason in aside.items()],
        "shards": [asdict(record) for record in found],
    }
    store.replace(MANIFEST, _json(values))
    store.replace(README, _readme(plan, values).encode())


def _readme(plan: Plan, values: dict[str, Any]) -> str:
    settings = plan.settings
    layers = settings["layers"]
    columns = [f"layer_{k}" for k in layers] if settings["stacked"] else ["vectors"]
    vectors = ", ".join(f"`{name}`" for name in columns)
    sources = "".join(f"- {file.path}\n" for file in plan.files[:20])
    more = f"- and {len(plan.files) - 20:,} more\n" if len(plan.files) > 20 else ""
    pooled = ""
    if settings["sentence_vectors"]:
        names = ", ".join(f"`sentence_{name}`" for name in columns)
        pooled = f"\n- {names}: one vector per sentence ({settings['sentence_vectors']})"
    aside = len(values["set_aside"])
    note = f" {aside} shards were set aside; manifest.json has the reasons." if aside else ""
    return f"""# ELMo vectors

ElmoKit {__version__} wrote this folder with the model {Path(plan.model).name or plan.model}
(weights {settings["model"][:16]}…, tokenizer {settings["tokenizer"]}, {settings["precision"]}).
It has {values["rows"]:,} sentences with {values["tokens"]:,} tokens in {len(values["shards"]):,} \
shards.{note}

Columns of `data/*.parquet`:

- `source`, `position`: the file of the sentence, and its byte or row there
- `sentence`, `tokens`: its text
- {vectors}: one vector of {plan.dim} {settings["dtype"]} numbers per token{pooled}

Read it, for instance, with `pyarrow.dataset.dataset("data")`. `manifest.json` lists the shards
with their checksums; `elmokit shards . verify` compares them.

Input:

{sources}{more}"""


def _json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()
