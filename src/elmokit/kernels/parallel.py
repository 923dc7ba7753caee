"""Run both directions in parallel on a CPU, each with its share of the threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier
from typing import TypeVar

import torch

Result = TypeVar("Result")

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process and number of threads


def run_all(tasks: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Run independent tasks without gradients and return their results in order.

    Tasks run in parallel on a CPU with several threads, otherwise one after another.
    """
    threads = torch.get_num_threads()
    if len(tasks) < 2 or device.type != "cpu" or threads < 2 or torch.is_grad_enabled():
        return [task() for task in tasks]
    inference = torch.is_inference_mode_enabled()

    def in_mode(task: Callable[[], Result]) -> Result:
        # both modes belong to a thread, and a new thread does not inherit them
        with torch.inference_mode(inference), torch.no_grad():
            return task()

    try:
        pool = _pool(threads, len(tasks))
        futures = [pool.submit(in_mode, task) for task in tasks]
    except RuntimeError:  # Python is shutting down and starts no more threads
        return [task() for task in tasks]
    wait(futures)  # even if one fails, because the other must not write into the next batch
    return [future.result() for future in futures]


def _pool(threads: int, n_tasks: int) -> ThreadPoolExecutor:
    """A pool with one worker per task; the workers share the threads."""
    key = (os.getpid(), threads)  # threads do not survive a fork
    if key not in _pools:
        pool = ThreadPoolExecutor(n_tasks, "elmokit")
        all_workers = Barrier(n_tasks)

        def set_up(_: int) -> None:
            # The first use of PyTorch in a thread adopts the process's number of threads, which
            # would overwrite a number set before.
            torch.get_num_threads()
            torch.set_num_threads(max(1, threads // n_tasks))
            all_workers.wait()  # so each worker runs this exactly once

        list(pool.map(set_up, range(n_tasks)))
        torch.set_num_threads(threads)  # otherwise new threads would adopt the workers' number
        _pools[key] = pool
    return _pools[key]
