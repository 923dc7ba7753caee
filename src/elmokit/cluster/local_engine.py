"""The engine of one machine: a process per core or per GPU, each with a copy of the model."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection, wait
from typing import Any

from elmokit.arguments import number, whole_number
from elmokit.cluster.scheduler import Outcome, start_writer, write_shard
from elmokit.cluster.shard_inputs import Range
from elmokit.cluster.shard_writer import ShardSpec, worker_name

_STOP_SECONDS = 5.0


class LocalPool:
    """Worker processes of this machine.

    Args:
        spec: How to compute shards.
        workers: How many processes; None for one per GPU, or one per core without GPUs.
        gpus_per_worker: The share of a GPU that a process takes; None for a whole one. With 0.5,
            two processes share each GPU.
    """

    def __init__(
        self, spec: ShardSpec, workers: int | None = None, gpus_per_worker: float | None = None
    ) -> None:
        self._spec = spec
        self._devices = choose_devices(spec.model.device, workers, gpus_per_worker)
        # a forked child would share the locks of this process's threads
        self._context = multiprocessing.get_context("spawn")
        self._processes: dict[int, Any] = {}
        self._pipes: dict[int, Connection] = {}
        try:
            for worker in self.workers:
                self._start(worker)
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> range:
        """The numbers of all workers."""
        return range(len(self._devices))

    def _start(self, worker: int) -> None:
        ours, theirs = self._context.Pipe()
        device = self._devices[worker]
        threads = 1 if device == "cpu" else None
        process = self._context.Process(
            target=_serve, args=(theirs, self._spec, device, threads), daemon=True
        )
        with _environment(threads):
            process.start()
        theirs.close()  # otherwise the pipe would never end
        self._processes[worker], self._pipes[worker] = process, ours

    def assign(self, worker: int, part: Range, attempt: int) -> None:
        """Give an idle worker a shard."""
        with contextlib.suppress(OSError):  # it has just died, which wait() will report
            self._pipes[worker].send((part, attempt))

    def wait(self, seconds: float) -> list[Outcome]:
        """What has happened since the last call; waits if it is nothing."""
        workers = {pipe: worker for worker, pipe in self._pipes.items()}
        found = []
        for pipe in wait(list(workers), seconds):
            assert isinstance(pipe, Connection)
            worker = workers[pipe]
            try:
                found.append(Outcome(worker, **pipe.recv()))
            except (EOFError, OSError):
                found.append(Outcome(worker, "died", reason=self._last_words(worker)))
                self._start(worker)
        return found

    def _last_words(self, worker: int) -> str:
        process = self._processes[worker]
        process.join(_STOP_SECONDS)
        code = process.exitcode
        self._pipes[worker].close()
        if code is not None and code < 0:
            return f"process {process.pid} was ended by {signal.Signals(-code).name}"
        return f"process {process.pid} exited with {code}"

    def retire(self, worker: int) -> None:
        """Stop a worker for good."""
        self._pipes.pop(worker).close()
        _stop(self._processes.pop(worker))

    def close(self) -> None:
        """Stop all workers, whatever they do."""
        for process in self._processes.values():
            process.terminate()
        for worker in list(self._pipes):
            self.retire(worker)


def choose_devices(
    device: str | None, workers: int | None, gpus_per_worker: float | None
) -> list[str]:
    """The device of each worker.

    Args:
        device: The one the user chose; None for GPUs if there are any.
        workers: How many; None for as many as fit.
        gpus_per_worker: The share of a GPU per worker.
    """
    import torch

    if workers is not None:
        whole_number(workers, "workers", 1, 4096)
    share = 1.0
    if gpus_per_worker is not None:
        share = number(gpus_per_worker, "gpus_per_worker", 0)
    if device is not None and device != "cuda":
        return [device] * (workers or (n_cores() if device == "cpu" else 1))
    n_gpus = torch.cuda.device_count() if share and torch.cuda.is_available() else 0
    if not n_gpus:
        return [device or "cpu"] * (workers or n_cores())
    per_gpu = max(1, round(1 / share))
    return [f"cuda:{k % n_gpus}" for k in range(workers or n_gpus * per_gpu)]


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _serve(pipe: Connection, spec: ShardSpec, device: str, threads: int | None) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    writer = start_writer(spec, device, threads)
    if isinstance(writer, str):
        pipe.send({"kind": "unfit", "reason": writer})
        return
    pipe.send({"kind": "ready", "name": worker_name()})
    while True:
        try:
            part, attempt = pipe.recv()
        except EOFError:
            return
        pipe.send(write_shard(writer, part, attempt))


def _end_with_parent() -> None:
    """End at once when the parent does, however that happened."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextlib.contextmanager
def _environment(threads: int | None) -> Any:
    """Let a child start with a number of threads, before it imports torch."""
    before = os.environ.get("OMP_NUM_THREADS")
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("OMP_NUM_THREADS", None)
        else:
            os.environ["OMP_NUM_THREADS"] = before


def _stop(process: Any) -> None:
    process.terminate()
    process.join(_STOP_SECONDS)
    if process.is_alive():
        process.kill()
        process.join(_STOP_SECONDS)
