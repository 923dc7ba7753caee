"""Embed a corpus as a folder of shards, on an engine: plan, compute what is missing, sum up."""

from __future__ import annotations

import contextlib
import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.cluster import manifest, shard_records
from elmokit.cluster.local_engine import LocalPool
from elmokit.cluster.manifest import Plan
from elmokit.cluster.scheduler import Scheduler, Tally
from elmokit.cluster.shard_inputs import Range, find_inputs
from elmokit.cluster.shard_options import ShardOptions, check_apart, check_options
from elmokit.cluster.shard_records import PLAN, RECORDS, Record
from elmokit.cluster.shard_rows import read_rows
from elmokit.cluster.shard_store import Store, check_parent
from elmokit.cluster.shard_writer import ModelSpec, ShardSpec, worker_name
from elmokit.cluster.store_lock import lock_store
from elmokit.embed.run import vector_settings
from elmokit.errors import InputError, LanguageWarning, OutputError, shortened
from elmokit.inference.layers import LayerChoice
from elmokit.io.atomic import CONTINUE, clear_errors
from elmokit.io.lock import LOCK, lock_folder
from elmokit.io.progress import DelayedProgress

_LISTING_SECONDS = 60.0  # network file systems may list a new file late


@dataclass(frozen=True)
class ShardSummary:
    """Numbers about a run that came to its end."""

    shards: int
    """Finished, in all."""
    resumed: int
    """Of them, finished by earlier runs."""
    rows: int
    tokens: int
    bytes: int
    """Of all data."""
    seconds: float
    """Of this run."""
    retried: int
    """Attempts that failed and were repeated."""
    set_aside: dict[int, str] = field(default_factory=dict)
    """Shards that could not be computed, with their reasons."""
    retired: list[str] = field(default_factory=list)
    """Why workers got no more shards, such as a full disk."""
    rates: dict[str, float] = field(default_factory=dict)
    """Tokens per second of each worker in this run."""


def embed_shards(
    model: ModelSpec,
    inputs: Sequence[str | Path],
    output: str | Path,
    options: ShardOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ShardSummary:
    """Write the vectors of a corpus into a folder of Parquet files.

    The folder can be on a disk that all workers share, or in an object store. A shard appears in it
    when it is complete. A run that was stopped, in whatever way, continues with the missing shards
    if ``resume`` is set and model, options and inputs are the same.

    Args:
        model: The model, as every worker loads it.
        inputs: Files, folders, or URLs of text, JSON lines or Parquet.
        output: A folder or URL.
        options: How; default: ``ShardOptions()``.
        say: Called with messages about the work.
    """
    started = time.monotonic()
    options = options or ShardOptions()
    check_options(model, inputs, options)
    store = Store(output)
    check_apart(inputs, store)
    with _writing(store, say) as check:
        _check_output(store, options)
        settings, dim = _settings(model, options)
        plan, done = _plan(store, model, inputs, settings, dim, options, check)
        parts = [part for part in plan.ranges() if part.number not in done]
        if options.resume:
            say(f"{len(done):,} of {len(plan.ranges()):,} shards are done")
        else:
            n_bytes = sum(part.n_bytes for part in parts)
            say(f"{len(parts):,} shards of {n_bytes / 1e6:,.1f} MB in {len(plan.files):,} files")
        spec = ShardSpec(
            store.url,
            model,
            options.layers,
            options.dtype,
            options.state,
            options.batch_size,
            options.text_column,
            options.sentence_vectors,
            plan.settings,
            shard_records.plan_sha256(store),
        )
        tally = _compute(spec, store, plan, parts, options, say, check)
        finished = done | tally.records
        _check_listed(store, finished)
        check()
        manifest.write_manifest(store, plan, finished)
        manifest.remove_surplus(store, finished.values())
    for note in sorted({note for record in tally.records.values() for note in record.notes})[:1]:
        warnings.warn(note, LanguageWarning, stacklevel=2)
    return ShardSummary(
        shards=len(finished),
        resumed=len(done),
        rows=sum(record.rows for record in finished.values()),
        tokens=sum(record.tokens for record in finished.values()),
        bytes=sum(record.bytes for record in finished.values()),
        seconds=time.monotonic() - started,
        retried=tally.retried,
        set_aside=tally.set_aside,
        retired=tally.retired,
        rates=tally.rates(),
    )


@contextlib.contextmanager
def _writing(store: Store, say: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Hold the lock of a folder, and explain what goes wrong with it.

    Yields a function that raises if another run has taken the lock.
    """
    if not store.is_local:
        try:
            store.read(PLAN)
        except Exception as error:  # stores have errors of their own, such as missing credentials
            raise OutputError(
                f"cannot use {store.url} ({shortened(str(error))}); check the address, and your "
                "credentials"
            ) from error
        with lock_store(store, worker_name(), say) as lock:
            yield lock.check
        return
    check_parent(store)
    path = store.local_path()
    existed = path.exists()
    with clear_errors(path, CONTINUE), lock_folder(path, path):
        try:
            yield lambda: None
        finally:
            with contextlib.suppress(OSError):
                (path / LOCK).unlink(missing_ok=True)
                if not existed:
                    path.rmdir()  # if nothing was written


def _check_output(store: Store, options: ShardOptions) -> None:
    """Raise if the folder is another run's, or has other files."""
    if others := manifest.other_files(store):
        raise OutputError(
            f"{store.url} contains other files: {', '.join(others[:3])}; choose another folder"
        )
    if store.read(PLAN) is None:
        return
    # a run that ended before its first shard, such as one that found no cluster, left a plan only
    if options.restart or not (options.resume or store.sizes(RECORDS)):
        manifest.remove_all(store)
    elif not options.resume:
        raise OutputError(
            f"an earlier run wrote to {store.url}; pass resume=True to continue it, or pass "
            "restart=True to start over"
        )


def _settings(model: ModelSpec, options: ShardOptions) -> tuple[dict[str, Any], int]:
    """Everything that the shards depend on, and the width of the vectors."""
    # the machine that starts the run may have no GPU, which bfloat16 needs
    elmo = model.load(device="cpu", quantize=None)
    choice = LayerChoice.parse(options.layers, elmo.n_layers)
    settings = vector_settings(elmo, choice, options.dtype, options.state)
    settings["precision"] = model.quantize or "float32"
    settings |= {
        "text_column": options.text_column,
        "shard_rows": options.shard_rows,
        "sentence_vectors": options.sentence_vectors,
        "batch_size": options.batch_size,
    }
    return settings, elmo.dim


def _plan(
    store: Store,
    model: ModelSpec,
    inputs: Sequence[str | Path],
    settings: dict[str, Any],
    dim: int,
    options: ShardOptions,
    check: Callable[[], None],
) -> tuple[Plan, dict[int, Record]]:
    """The plan, new or that of the earlier run, and the records of finished shards."""
    if not options.resume or store.read(PLAN) is None:
        files = find_inputs(inputs, options.shard_rows, options.text_column)
        name = model.model or model.weights or "en"
        plan = Plan(settings, dim, name, files)
        plan.write(store)
        return plan, {}
    plan = Plan.read(store)
    plan.check_settings(settings, store.url)
    found = find_inputs(inputs, options.shard_rows, options.text_column)
    touched = plan.changed_files(found)
    done = shard_records.read_records(store)
    _check_touched(plan, done, touched)
    check()  # reading the input may have taken hours
    manifest.prepare_again(store, done)
    return plan, done


def _check_touched(plan: Plan, done: dict[int, Record], touched: Sequence[str]) -> None:
    """Compare the input of finished shards with their checksums, in files written since."""
    parts = [p for p in plan.ranges() if p.path in set(touched) and p.number in done]
    column = plan.settings["text_column"]
    with DelayedProgress("checking the input", sum(p.n_bytes for p in parts), "bytes") as bar:
        for part in parts:
            digest = hashlib.sha256()
            try:
                for _ in read_rows(part, column, digest):
                    pass
            except OSError as error:
                raise InputError(f"cannot read {part.path}: {shortened(str(error))}") from error
            if digest.hexdigest() != done[part.number].input_sha256:
                raise InputError(
                    f"{part.path} has changed since the earlier run, in the input of shard "
                    f"{part.number}; give the same input, or pass restart=True to start over"
                )
            bar.advance(part.n_bytes)


def _check_listed(store: Store, finished: dict[int, Record]) -> None:
    """Raise if the store does not have what the workers have written."""
    until = time.monotonic() + _LISTING_SECONDS
    while lost := shard_records.missing_records(store, finished.values()):
        if time.monotonic() < until:
            time.sleep(1)
            continue
        raise OutputError(
            f"{len(lost):,} finished shards have disappeared from {store.url}, the first is "
            f"{lost[0]}; compute them again with resume=True"
        )


def _compute(
    spec: ShardSpec,
    store: Store,
    plan: Plan,
    parts: list[Range],
    options: ShardOptions,
    say: Callable[[str], None],
    check: Callable[[], None],
) -> Tally:
    """Run the missing shards of a plan on the engine; returns the tally."""
    if not parts:
        return Tally()
    total = sum(part.n_bytes for part in plan.ranges())
    missing = sum(part.n_bytes for part in parts)
    pool: Any
    if options.engine == "ray":
        from elmokit.cluster.ray_engine import RayPool

        pool = RayPool(spec, options.address, options.workers, options.gpus_per_worker, say)
    else:
        pool = LocalPool(spec, options.workers, options.gpus_per_worker)
    bar = DelayedProgress("embedding", total, "bytes", already=total - missing)

    def advance(part: Range, description: str) -> None:
        bar.describe(description)
        bar.advance(part.n_bytes)

    def set_aside(shard: int, reason: str, attempts: int) -> None:
        shard_records.set_aside(store, shard, reason, attempts)

    with contextlib.closing(pool), bar:
        return Scheduler(pool, parts, set_aside, advance, check).run()
