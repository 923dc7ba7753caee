"""Run seeded cases in worker processes, and report what failed, hung, crashed or grew too large.

A fuzzer is a script with one function::

    def case(seed: int, folder: Path) -> str: ...

which does everything that the seed determines in an empty folder, and returns what came of it in a
word or two ("loaded", "FormatError"). Any exception it lets through is a failure. The script ends
with ``sys.exit(run("loaders", case, Limits(...)))``, and takes these options:

    --seeds 0:1000     which seeds to run
    --seed 17          run one case in this process, with its traceback
    --processes 2      worker processes
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

Case = Callable[[int, Path], str]

_REPORT_SECONDS = 30.0
_SHOWN = 20  # failures printed in full


@dataclass(frozen=True)
class Limits:
    """What a single case may use."""

    cpu_seconds: float = 5.0
    wall_seconds: float = 60.0
    """After this time a case counts as hanging and is killed."""
    peak_bytes: int = 1 << 30
    """Memory beyond what the process had before the case."""


@dataclass(frozen=True)
class Outcome:
    """What came of one case."""

    seed: int
    label: str
    """What the case returned; for a failure, what was wrong."""
    failed: bool = False
    details: str = ""
    """The traceback of a failure."""
    cpu_seconds: float = 0.0
    peak_bytes: int = 0


def run(name: str, case: Case, limits: Limits | None = None, default_seeds: str = "0:500") -> int:
    """Run the cases that the command line asks for; the result is the exit code."""
    parser = argparse.ArgumentParser(description=f"Fuzz: {name}.")
    parser.add_argument("--seeds", default=default_seeds, help=f"default: {default_seeds}")
    parser.add_argument("--seed", type=int, help="run one case here, with its traceback")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    limits = limits or Limits()
    if options.seed is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(f"seed {options.seed}: {case(options.seed, Path(folder))}")
        return 0
    first, last = map(int, options.seeds.split(":"))
    started = time.monotonic()
    outcomes = _run_all(name, case, range(first, last), limits, options.processes)
    return _report(name, outcomes, limits, time.monotonic() - started)


def _run_all(
    name: str, case: Case, seeds: range, limits: Limits, n_processes: int
) -> list[Outcome]:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one busy thread per worker
    todo = iter(seeds)
    outcomes: list[Outcome] = []
    workers: list[_Worker] = []
    shown = started = time.monotonic()
    try:
        for _ in range(min(n_processes, len(seeds))):
            workers.append(_Worker(case, limits))
            workers[-1].give(next(todo, None))
        while busy := [worker for worker in workers if worker.seed is not None]:
            wait([worker.connection for worker in busy], timeout=1)
            for worker in busy:
                outcome = worker.outcome()
                if outcome is not None:
                    outcomes.append(outcome)
                    worker.give(next(todo, None))
            if time.monotonic() - shown > _REPORT_SECONDS:
                shown = time.monotonic()
                left = (shown - started) / max(1, len(outcomes)) * (len(seeds) - len(outcomes))
                n_failed = sum(outcome.failed for outcome in outcomes)
                print(
                    f"{name}: {len(outcomes):,} of {len(seeds):,} cases, {n_failed} failed, "
                    f"about {left:.0f} s left",
                    flush=True,
                )
    finally:
        for worker in workers:
            worker.end()
    return outcomes


class _Worker:
    """A process that runs one case after another, and is replaced if it hangs or crashes."""

    def __init__(self, case: Case, limits: Limits) -> None:
        self._case, self._limits = case, limits
        self.seed: int | None = None
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_work, args=(self._case, self._limits, theirs), daemon=False
        )
        self._process.start()
        theirs.close()

    def give(self, seed: int | None) -> None:
        self.seed, self._since = seed, time.monotonic()
        if seed is not None:
            self.connection.send(seed)

    def outcome(self) -> Outcome | None:
        """The outcome of the current case; None if it is still running."""
        assert self.seed is not None
        problem = ""
        if self.connection.poll():
            try:
                return self.connection.recv()
            except EOFError:
                self._process.join()
                problem = f"the process died with exit code {self._process.exitcode}"
        elif time.monotonic() - self._since > self._limits.wall_seconds:
            problem = f"no answer after {self._limits.wall_seconds:.0f} s"
        if not problem:
            return None
        self.end()
        self._begin()
        return Outcome(self.seed, problem, failed=True)

    def end(self) -> None:
        self.connection.close()  # a worker that waits for a seed ends by itself
        self._process.join(0 if self.seed is not None else 5)
        self._process.kill()
        self._process.join()


def _work(case: Case, limits: Limits, connection: Connection) -> None:
    while True:
        try:
            seed = connection.recv()
        except EOFError:
            return
        connection.send(_run_one(case, limits, seed))


def _run_one(case: Case, limits: Limits, seed: int) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    before, cpu = _reset_peak(), time.process_time()
    label, failed, details = "", False, ""
    try:
        label = case(seed, folder)
    except Exception as error:  # whatever it is, it is what the fuzzer looks for
        place = traceback.extract_tb(error.__traceback__)[-1]
        label = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        failed, details = True, traceback.format_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    cpu, peak = time.process_time() - cpu, max(0, _peak() - before)
    if not failed and cpu > limits.cpu_seconds:
        label, failed = f"{label} after {cpu:.1f} CPU-seconds", True
    if not failed and peak > limits.peak_bytes:
        label, failed = f"{label} with {peak / 2**20:.0f} MiB", True
    return Outcome(seed, label, failed, details, cpu, peak)


def _reset_peak() -> int:
    """Forget the peak of this process's memory, where the system can; the memory in use."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):  # not Linux: the peak of the whole life of the process
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _report(name: str, outcomes: list[Outcome], limits: Limits, seconds: float) -> int:
    failures = [outcome for outcome in outcomes if outcome.failed]
    labels = Counter(outcome.label for outcome in outcomes if not outcome.failed)
    for failure in failures[:_SHOWN]:
        print(f"\nseed {failure.seed}: {failure.label}\n{failure.details}".rstrip())
    if failures:
        print("\nfailures by kind:")
        for label, n in Counter(failure.label for failure in failures).most_common():
            seeds = [str(f.seed) for f in failures if f.label == label][:8]
            print(f"  {n:6,}  {label}  (seeds {', '.join(seeds)})")
    print(f"\n{name}: {len(outcomes):,} cases in {seconds:.0f} s, {len(failures)} failed")
    for label, n in labels.most_common():
        print(f"  {n:6,}  {label}")
    if outcomes:
        slowest = max(outcomes, key=lambda o: o.cpu_seconds)
        largest = max(outcomes, key=lambda o: o.peak_bytes)
        print(f"  slowest: {slowest.cpu_seconds:.2f} CPU-seconds (seed {slowest.seed})")
        print(f"  largest: {largest.peak_bytes / 2**20:.0f} MiB (seed {largest.seed})")
    return 1 if failures else 0
