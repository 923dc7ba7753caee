"""What a folder of shards contains: the plan, a record per finished shard, and the manifest.

::

    plan.json              what the vectors depend on, and where the input is cut
    data/part-000012-….parquet
                           the vectors of shard 12; the end of the name is its checksum
    shards/000012.json     the record of shard 12, created after its data
    shards/000012.failed.json
                           why shard 12 was set aside
    manifest.json          all records, and all shards set aside; written at the end
    README.md              what made the folder, and how to read it
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit._version import __version__
from elmokit.cluster.shard_inputs import InputFile, Range, ranges
from elmokit.cluster.shard_records import (
    DATA,
    PLAN,
    RECORDS,
    Record,
    own_data,
    own_records,
    record_name,
    shards_set_aside,
    to_json,
)
from elmokit.cluster.shard_store import TEMPORARY, Store
from elmokit.errors import FormatError, InputError
from elmokit.io.lock import LOCK

VERSION = 1
MANIFEST, README = "manifest.json", "README.md"

_TOP = (PLAN, MANIFEST, README, LOCK)
_FOLDERS = (DATA, RECORDS, TEMPORARY)
_AGAIN = "or pass restart=True to start over"


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
        store.replace(PLAN, to_json(values))

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


def prepare_again(store: Store, finished: Iterable[int]) -> None:
    """Make a folder ready for the shards that are missing.

    Records without data, such as those a user has deleted, would keep a shard from being written;
    shards that were set aside are tried again.
    """
    kept = {record_name(shard) for shard in finished}
    store.remove_files(own_records(store.sizes(RECORDS)) - kept)
    store.remove(TEMPORARY)


def remove_surplus(store: Store, records: Iterable[Record]) -> None:
    """Delete data that no record names, once every shard has a record or was set aside."""
    kept = {record.file for record in records}
    store.remove_files(own_data(store.sizes(DATA)) - kept)
    store.remove(TEMPORARY)


def remove_all(store: Store) -> None:
    """Delete a run; files that are not ours stay.

    The plan is the last: without it, the rest would be taken for files of others.
    """
    store.remove_files(own_data(store.sizes(DATA)) | own_records(store.sizes(RECORDS)))
    store.remove(TEMPORARY)
    for name in (DATA, RECORDS):
        store.remove_folder_if_empty(name)
    for name in (MANIFEST, README, PLAN):
        store.remove(name)


def other_files(store: Store) -> list[str]:
    """Files and folders here that no run has written: they must never be deleted."""
    top, data, records = store.sizes(), store.sizes(DATA), store.sizes(RECORDS)
    found = {name for name in top if name not in _TOP}
    found |= {name for name in store.folders() if name not in _FOLDERS}
    found |= {name for folder in (DATA, RECORDS) for name in store.folders(folder)}
    found |= (data.keys() - own_data(data)) | (records.keys() - own_records(records))
    if not _is_plan(store.read(PLAN)):  # then nothing here is a run's
        found |= {*top, *data, *records} - {LOCK}
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
    store.replace(MANIFEST, to_json(values))
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
