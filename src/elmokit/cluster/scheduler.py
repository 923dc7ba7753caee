"""Hand out shards to workers, and decide what happens when one fails.

A worker gets one shard at a time. If the worker dies or an unexpected error occurs, the shard is
tried again, on another machine if there is one, three times in all; then it is set aside with its
reason. A mistake in the input is set aside at once. A worker whose disk is full gets no more
shards, nor does one that fails several times in a row while there are others; their shards go to
other workers, and these attempts do not count.
"""

from __future__ import annotations

import errno
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from elmokit.cluster.shard_inputs import Range
from elmokit.cluster.shard_records import Record
from elmokit.cluster.shard_writer import ShardSpec, ShardWriter, worker_name
from elmokit.errors import ElmoKitError, InputError, ModelError, OutputError, shortened

MOST_ATTEMPTS = 3
"""Attempts at a shard before it is set aside."""

_MOST_BAD_STARTS = 3  # of a worker in a row, before the run gives up on it
_MOST_FAILURES = 3  # of a worker with different shards in a row
_WAIT_SECONDS = 1.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Outcome:
    """What became of a worker's start, or of its shard."""

    worker: int
    kind: Literal["ready", "done", "input", "space", "error", "died", "unfit"]
    """ready to work; done; a mistake in the input; a full disk; an unexpected error; the worker
    is dead, and the engine has replaced it; the worker cannot start."""
    record: Record | None = None
    reason: str = ""
    name: str = ""
    """Of the machine and process."""


class Pool(Protocol):
    """The workers of an engine, by number."""

    workers: Sequence[int]
    """The numbers of all workers, also of those that have not started yet."""

    def assign(self, worker: int, part: Range, attempt: int) -> None:
        """Give an idle worker a shard."""

    def wait(self, seconds: float) -> list[Outcome]:
        """What has happened since the last call; waits if it is nothing."""

    def retire(self, worker: int) -> None:
        """Give a worker no more work."""

    def close(self) -> None:
        """Stop all workers, whatever they do."""


@dataclass
class Tally:
    """Numbers about the work so far."""

    records: dict[int, Record] = field(default_factory=dict)
    set_aside: dict[int, str] = field(default_factory=dict)
    retried: int = 0
    """Attempts that were repeated."""
    retired: list[str] = field(default_factory=list)
    """Why workers got no more shards."""
    tokens: Counter[str] = field(default_factory=Counter)
    """By worker."""
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By worker, spent on finished shards."""

    def rates(self) -> dict[str, float]:
        """Tokens per second of each worker."""
        return {
            name: n / self.seconds[name] for name, n in self.tokens.items() if self.seconds[name]
        }

    def describe(self, n_workers: int) -> str:
        """The work in a few words, for the progress bar."""
        rates = self.rates().values()
        parts = [f"{n_workers} workers"]
        if rates:
            parts.append(f"{sum(rates) / len(rates):,.0f} tokens/s each")
        if self.retried:
            parts.append(f"{self.retried} retried")
        if self.set_aside:
            parts.append(f"{len(self.set_aside)} set aside")
        if self.retired:
            parts.append(f"{len(self.retired)} gave up")
        return f"embedding ({', '.join(parts)})"


class Scheduler:
    """Runs shards on a pool until each is done or set aside.

    Args:
        pool: The workers.
        parts: The shards to compute.
        set_aside: Called with a shard's number, the reason and the number of attempts.
        advance: Called with each finished shard and a description of the work.
        check: Called about once a second; it may raise to end the run.
    """

    def __init__(
        self,
        pool: Pool,
        parts: Sequence[Range],
        set_aside: Callable[[int, str, int], None],
        advance: Callable[[Range, str], None],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._pool, self._set_aside, self._advance = pool, set_aside, advance
        self._check = check
        self._waiting = deque(parts)
        self._running: dict[int, Range] = {}
        self._idle: set[int] = set()
        self._up: dict[int, str] = {}  # workers that have started, and their machines
        self._attempts: Counter[int] = Counter()
        self._failed_on: dict[int, list[tuple[int, str]]] = defaultdict(list)  # by shard
        self._in_a_row: dict[int, set[int]] = defaultdict(set)  # shards that a worker failed with
        self._bad_starts: Counter[int] = Counter()
        self._retired: set[int] = set()
        self.tally = Tally()

    def run(self) -> Tally:
        """Compute all shards. More workers may join the pool while it runs."""
        while self._waiting or self._running:
            if self._retired >= set(self._pool.workers):
                raise self._nobody_left()
            self._check()
            for outcome in self._pool.wait(_WAIT_SECONDS):
                self._note(outcome)
            for worker in sorted(self._idle):
                if (part := self._next(worker)) is not None:
                    self._idle.remove(worker)
                    self._attempts[part.number] += 1
                    self._running[worker] = part
                    self._pool.assign(worker, part, self._attempts[part.number])
        return self.tally

    def _next(self, worker: int) -> Range | None:
        """Take the first waiting shard that a worker may try."""
        for index, part in enumerate(self._waiting):
            if self._may_try(worker, part):
                del self._waiting[index]
                return part
        return None

    def _may_try(self, worker: int, part: Range) -> bool:
        """Whether a shard has not failed on this machine or worker, as long as there are others."""
        failed = self._failed_on.get(part.number)
        if not failed:
            return True
        machines = set(self._up.values()) - {machine for _, machine in failed}
        if machines:
            return self._up[worker] in machines
        others = set(self._up) - {one for one, _ in failed}
        return not others or worker in others

    def _note(self, outcome: Outcome) -> None:
        worker = outcome.worker
        if worker in self._retired:
            return
        if outcome.kind == "ready":
            self._bad_starts[worker] = 0
            self._up[worker] = outcome.name.rpartition(":")[0]
            self._idle.add(worker)
            return
        self._idle.discard(worker)
        part = self._running.pop(worker, None)
        if part is not None and outcome.kind in ("died", "error"):
            self._failed_on[part.number].append((worker, self._up.get(worker, "")))
        if outcome.kind == "died":
            self._up.pop(worker, None)
            if part is None:
                self._bad_starts[worker] += 1
                if self._bad_starts[worker] == _MOST_BAD_STARTS:
                    self._retire(worker, f"it died while it started ({outcome.reason})")
            else:
                self._again(part, f"its worker died ({outcome.reason})")
        elif outcome.kind == "unfit":
            self._retire(worker, outcome.reason)
        elif part is not None:
            self._end(outcome, part)

    def _end(self, outcome: Outcome, part: Range) -> None:
        """Note the end of a shard whose worker lives."""
        if outcome.kind == "space":  # not the shard's fault
            self._attempts[part.number] -= 1
            self._waiting.appendleft(part)
            self.tally.retried += 1
            self._retire(outcome.worker, outcome.reason)
            return
        self._idle.add(outcome.worker)
        if outcome.kind != "error":
            self._in_a_row.pop(outcome.worker, None)
        if outcome.record is not None:
            self.tally.records[part.number] = outcome.record
            self.tally.tokens[outcome.name] += outcome.record.tokens
            self.tally.seconds[outcome.name] += outcome.record.seconds
            self._advance(part, self.tally.describe(len(self._up)))
        elif outcome.kind == "input":
            self._give_up(part, outcome.reason)
        else:
            self._again(part, outcome.reason)
            row = self._in_a_row[outcome.worker]
            row.add(part.number)
            if len(row) >= _MOST_FAILURES and len(self._up) > 1:
                for shard in row:
                    self._attempts[shard] -= 1
                reason = f"it failed with {len(row)} shards in a row ({outcome.reason})"
                self._retire(outcome.worker, reason)

    def _again(self, part: Range, reason: str) -> None:
        if self._attempts[part.number] < MOST_ATTEMPTS:
            self.tally.retried += 1
            self._waiting.append(part)  # at the end: what made it fail may pass meanwhile
        else:
            self._give_up(part, f"it failed {MOST_ATTEMPTS} times: {reason}")

    def _give_up(self, part: Range, reason: str) -> None:
        self.tally.set_aside[part.number] = reason
        self._set_aside(part.number, reason, self._attempts[part.number])
        self._advance(part, self.tally.describe(len(self._up)))

    def _retire(self, worker: int, reason: str) -> None:
        self._retired.add(worker)
        self.tally.retired.append(reason)
        self._up.pop(worker, None)
        self._idle.discard(worker)
        self._pool.retire(worker)

    def _nobody_left(self) -> ElmoKitError:
        reason = self.tally.retired[-1]
        left = len(self._waiting) + len(self._running)
        return OutputError(
            f"no worker is left for {left:,} shards: {reason}; solve this, and continue with "
            "resume=True"
        )


def start_writer(spec: ShardSpec, device: str | None, threads: int | None) -> ShardWriter | str:
    """Load the model in a worker; returns the reason if it cannot work here."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    try:
        return ShardWriter(spec, device)
    except Exception as error:  # such as a GPU without memory, or a package that is missing
        named = "" if isinstance(error, ElmoKitError) else f"{type(error).__name__}: "
        return f"{worker_name()}: {named}{shortened(str(error), 500)}"


def write_shard(writer: ShardWriter, part: Range, attempt: int) -> dict[str, Any]:
    """Compute a shard in a worker; returns the fields of an :class:`Outcome`."""
    name = worker_name()
    try:
        return {"kind": "done", "record": writer.write(part, attempt), "name": name}
    except (InputError, ModelError) as error:
        return {"kind": "input", "reason": shortened(str(error), 500), "name": name}
    except Exception as error:  # whatever it is, the other shards go on
        full = isinstance(error, OSError) and error.errno in _FULL
        reason = f"{name}: {type(error).__name__}: {shortened(str(error), 500)}"
        return {"kind": "space" if full else "error", "reason": reason, "name": name}
