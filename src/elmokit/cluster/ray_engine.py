"""The engine of many machines: Ray actors, each with a copy of the model.

Each actor loads the model once and computes one shard at a time. It reads its input and writes its
output itself, so only descriptions of shards and their records pass through Ray: the driver sends
the next one when an actor is idle, and the object store stays almost empty, whatever the corpus.

Ray Data could schedule the same actors, but it repeats a task that has lost its actor without end
("infinite retries remaining", Ray 2.60), and a shard that kills its worker would block all others.
Plain actors leave these decisions to the scheduler, which is the same for all engines.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import time
from collections.abc import Callable
from typing import Any

from elmokit.arguments import number, whole_number
from elmokit.cluster.scheduler import Outcome, start_writer, write_shard
from elmokit.cluster.shard_inputs import Range
from elmokit.cluster.shard_writer import ShardSpec, ShardWriter, worker_name
from elmokit.errors import InputError, OutputError, shortened

_OBJECT_STORE_BYTES = 100 << 20  # of a cluster that is started here; almost nothing is put into it
_CONNECT_SECONDS = 10.0
_LOOK_SECONDS = 5.0  # between two looks for machines that have joined
_PING_SECONDS = 10.0
_SAY_SECONDS = 60.0  # between two messages that nothing can start
FIRST_WORD_SECONDS = 15.0
"""Without a worker for this long, the pool says what it waits for."""
GIVE_UP_SECONDS = 900.0
"""Without a worker for this long, the run ends. Starting a machine in a cloud takes minutes."""


class _Actor:
    """A worker on some machine of the cluster."""

    def __init__(self, spec: ShardSpec, device: str | None, threads: int | None) -> None:
        self._arguments = (spec, device, threads)
        self._writer: ShardWriter | str = "the model is not loaded"

    def alive(self) -> dict[str, Any]:
        """Answer at once: this actor has its place on a machine."""
        return {"kind": "alive"}

    def load(self) -> dict[str, Any]:
        """Load the model, and say whether that succeeded."""
        self._writer = start_writer(*self._arguments)
        if isinstance(self._writer, str):
            return {"kind": "unfit", "reason": self._writer}
        return {"kind": "ready", "name": worker_name()}

    def write(self, part: Range, attempt: int) -> dict[str, Any]:
        """Compute a shard."""
        assert not isinstance(self._writer, str)
        return write_shard(self._writer, part, attempt)


class RayPool:
    """Actors of a Ray cluster.

    Args:
        spec: How to compute shards.
        address: As for ``ray.init``; "local" starts a cluster on this machine, which ends with the
            pool.
        workers: How many actors; None for as many as the cluster has room for, also on machines
            that join later.
        gpus_per_worker: GPUs of each actor; None for one if the cluster has any.
        say: Called with a message when no actor can start.
    """

    def __init__(
        self,
        spec: ShardSpec,
        address: str = "auto",
        workers: int | None = None,
        gpus_per_worker: float | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        import ray

        self._ray: Any = ray
        _connect(address)
        self._actors: dict[int, Any] = {}
        self._retired: list[Any] = []
        self._waiting: dict[Any, int] = {}  # what an actor will answer, and its worker
        self._say = say
        self._placed: set[int] = set()  # workers that live; they load the model, or compute
        self._up: set[int] = set()  # of them, those that have loaded it
        self._alone_since = self._looked = time.monotonic()
        self._next_word = FIRST_WORD_SECONDS
        try:
            found = ray.cluster_resources()
            self._gpus = _gpus_each(spec.model.device, gpus_per_worker, found)
            self._grows = workers is None
            n = max(1, _room(found, self._gpus)) if workers is None else workers
            self.workers = range(whole_number(n, "workers", 1, 100_000))
            # one thread for each CPU that an actor holds, which is one
            self._arguments = (spec, "cuda" if self._gpus else "cpu", None if self._gpus else 1)
            self._class = ray.remote(_Actor).options(
                num_cpus=1,
                num_gpus=self._gpus,
                max_restarts=0,  # the scheduler counts deaths, and starts another actor
                max_task_retries=0,
                scheduling_strategy="SPREAD",
            )
            for worker in self.workers:
                self._start(worker)
        except BaseException:
            self.close()
            raise

    def _start(self, worker: int) -> None:
        actor = self._class.remote(*self._arguments)
        self._actors[worker] = actor
        self._waiting[actor.alive.remote()] = worker

    def assign(self, worker: int, part: Range, attempt: int) -> None:
        """Give an idle worker a shard."""
        self._waiting[self._actors[worker].write.remote(part, attempt)] = worker

    def wait(self, seconds: float) -> list[Outcome]:
        """What has happened since the last call; waits if it is nothing."""
        self._grow()
        answers, _ = self._ray.wait(
            list(self._waiting), num_returns=1, timeout=seconds, fetch_local=False
        )
        found = []
        for answer in answers:
            outcome = self._outcome(answer, self._waiting.pop(answer))
            found += [outcome] if outcome is not None else []
            if outcome is not None and outcome.kind == "died":
                found += self._dead_idle()  # its machine may be gone, with other workers
        self._watch()
        return found

    def _dead_idle(self) -> list[Outcome]:
        """Find idle workers that died without an answer that would tell."""
        idle = sorted(self._up - set(self._waiting.values()))
        asked = {self._actors[worker].alive.remote(): worker for worker in idle}
        if not asked:
            return []
        answers, _ = self._ray.wait(
            list(asked), num_returns=len(asked), timeout=_PING_SECONDS, fetch_local=False
        )
        found = []
        for ref, worker in asked.items():
            try:
                if ref in answers:
                    self._ray.get(ref)
                    continue
                reason = f"it did not answer for {_PING_SECONDS:.0f} s"
            except self._ray.exceptions.RayError as error:
                reason = _last_line(error)
            found.append(self._replace(worker, reason))
        return found

    def _grow(self) -> None:
        """Start actors on machines that have joined the cluster."""
        now = time.monotonic()
        if not self._grows or now < self._looked + _LOOK_SECONDS:
            return
        self._looked = now
        n = _room(self._ray.cluster_resources(), self._gpus)
        for worker in range(len(self.workers), n):
            self.workers = range(worker + 1)
            self._start(worker)

    def _watch(self) -> None:
        """Say what the run waits for if no worker lives, and give up at last."""
        now = time.monotonic()
        if self._placed:
            self._alone_since, self._next_word = now, FIRST_WORD_SECONDS
            return
        alone = now - self._alone_since
        if alone < self._next_word:
            return
        self._next_word = alone + _SAY_SECONDS
        gpus = f" and {self._gpus:g} GPUs" if self._gpus else ""
        found, free = self._ray.cluster_resources(), self._ray.available_resources()
        reason = (
            f"no worker can start: each needs 1 CPU{gpus}, and of the cluster's "
            f"{found.get('CPU', 0):g} CPUs and {found.get('GPU', 0):g} GPUs, "
            f"{free.get('CPU', 0):g} and {free.get('GPU', 0):g} are free"
        )
        if alone >= GIVE_UP_SECONDS:
            raise OutputError(
                f"{reason}; add machines or free these, and continue with resume=True"
            )
        self._say(f"{reason}; waiting for {alone:.0f} s so far")

    def _outcome(self, answer: Any, worker: int) -> Outcome | None:
        """What an answer means for the scheduler; None if it is not about its shards."""
        try:
            values = self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            return self._replace(worker, _last_line(error))
        if values["kind"] == "alive":
            self._placed.add(worker)
            self._waiting[self._actors[worker].load.remote()] = worker
            return None
        if values["kind"] == "ready":
            self._up.add(worker)
        return Outcome(worker, **values)

    def _replace(self, worker: int, reason: str) -> Outcome:
        """Start another actor in place of one that died."""
        self._forget(worker)  # a machine that cannot be reached may still compute
        self._start(worker)
        return Outcome(worker, "died", reason=reason)

    def _forget(self, worker: int) -> None:
        self._up.discard(worker)
        self._placed.discard(worker)
        actor = self._actors.pop(worker, None)
        self._waiting = {ref: one for ref, one in self._waiting.items() if one != worker}
        if actor is not None:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)

    def retire(self, worker: int) -> None:
        """Give a worker no more work.

        Its actor stays until the end: it holds its place on a machine whose disk is full, so that
        Ray does not start another worker there.
        """
        self._up.discard(worker)
        self._placed.discard(worker)
        self._retired.append(self._actors.pop(worker, None))
        self._waiting = {ref: one for ref, one in self._waiting.items() if one != worker}

    def close(self) -> None:
        """Stop all workers, whatever they do, and leave the cluster."""
        for worker in list(self._actors):
            self._forget(worker)
        for actor in self._retired:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        self._ray.shutdown()


def _last_line(error: Exception) -> str:
    """The end of an error of Ray, where the cause is."""
    text = " ".join(str(error).split())
    return shortened(text if len(text) <= 300 else "…" + text[-299:], 300)


def _connect(address: str) -> None:
    import ray

    keywords: dict[str, Any] = {}
    if address == "local":
        keywords = {"object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False}
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **keywords)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = shortened(" ".join(str(error).split()), 200)
        raise InputError(
            f"there is no Ray cluster at address={address!r} ({reason}); check the address and the "
            'token of the cluster, start one with ray start, or use address="local"'
        ) from error


def _check_reachable(address: str) -> None:
    """Raise OSError if nobody listens at HOST:PORT; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()


def _gpus_each(device: str | None, wanted: float | None, found: dict[str, float]) -> float:
    """GPUs of each actor."""
    if device == "cpu":
        return 0.0
    n = found.get("GPU", 0)
    if wanted is not None:
        share = number(wanted, "gpus_per_worker", 0)
        if share > n:
            raise InputError(f"gpus_per_worker={share:g}, but the Ray cluster has {n:g} GPUs")
        return share
    if device is not None and not n:
        raise InputError(f'device="{device}", but the Ray cluster has no GPUs; use device="cpu"')
    return 1.0 if n else 0.0


def _room(found: dict[str, float], gpus: float) -> int:
    """How many actors the cluster has room for."""
    by_cpu = math.floor(found.get("CPU", 0))
    return min(by_cpu, math.floor(found.get("GPU", 0) / gpus)) if gpus else by_cpu
