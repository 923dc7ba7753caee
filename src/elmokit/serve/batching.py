"""Batches of the texts that all clients are waiting for.

When the model is free, the texts that wait are its next batch, up to a number of tokens. Nothing
waits for a batch to become full. Texts are taken in the order of their arrival, but a text of 1,000
tokens is treated as if it had come a second later, and so is a text that follows 1,000 tokens of
its own request. Short requests pass long ones, and no text waits forever.

The queue belongs to the event loop, so it needs no locks. One thread runs the model.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from elmokit.serve.refusals import RefusedError
from elmokit.serve.service_metrics import BatchMetrics
from elmokit.serve.service_settings import Limits

_SECONDS_PER_TOKEN = 0.001  # by which longer texts stand behind shorter ones
_QUIET_ROUNDS, _MOST_ROUNDS = 3, 256  # of the event loop, in which received requests are read
_QUEUED_BATCHES = 16  # most tokens that wait, in batches


@dataclass(frozen=True)
class Kind:
    """Work that can be done for several texts at once."""

    key: Hashable
    """Texts with the same key can share a batch."""
    run: Callable[[list[Any]], Sequence[Any]] = field(compare=False)
    """From the values of a batch to their results, in order."""
    most: int = field(default=1 << 30, compare=False)
    """Most texts of a batch. Work that is done text by text has no use for more than one."""


class _Ticket:
    """The texts of one request."""

    __slots__ = ("future", "remaining", "results")

    def __init__(self, n: int, future: asyncio.Future[list[Any]]) -> None:
        self.results: list[Any] = [None] * n
        self.remaining, self.future = n, future

    def deliver(self, place: int, result: Any) -> None:
        self.results[place] = result
        self.remaining -= 1
        if self.future.done():  # the client has gone, or another text has failed
            return
        if isinstance(result, Exception):
            self.future.set_exception(result)
        elif not self.remaining:
            self.future.set_result(self.results)


@dataclass(order=True)
class _Item:
    order: float
    number: int
    ticket: _Ticket = field(compare=False)
    place: int = field(compare=False)
    value: Any = field(compare=False)
    tokens: int = field(compare=False)


class Batcher:
    """A queue of texts, and a thread that runs them in batches.

    Args:
        name: Name of the thread and of the metrics.
        limits: Tokens of a batch, texts that may wait, and for how long.
        metrics: Where to count.
    """

    def __init__(self, name: str, limits: Limits, metrics: BatchMetrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._queues: dict[Kind, list[_Item]] = {}
        self._texts = self._tokens = self._number = 0
        self._arrived = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, f"elmokit-{name}")
        self._worker: asyncio.Task[None] | None = None
        self._rate = 1000.0  # tokens per second, as last seen

    @property
    def waiting(self) -> int:
        """Number of texts in the queue."""
        return self._texts

    def start(self) -> None:
        """Start to work, in the running event loop."""
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Stop. What is queued must have been finished."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        await asyncio.to_thread(self._pool.shutdown)

    def check_room(self, n: int) -> None:
        """Raise if so many texts do not fit into the queue."""
        full = self._texts + n > self._limits.queue
        if full or self._tokens > _QUEUED_BATCHES * self._limits.batch_tokens:
            self._metrics.refused.inc()
            seconds = min(60, max(1, math.ceil(self._tokens / self._rate)))
            raise RefusedError(
                429, f"{self._texts} texts are waiting already; try again later", seconds
            )

    def submit(
        self, kind: Kind, values: Sequence[Any], tokens: Sequence[int]
    ) -> asyncio.Future[list[Any]]:
        """Queue the texts of a request.

        Args:
            kind: What to do with them.
            values: The texts, as ``kind.run`` takes them.
            tokens: Number of tokens of each.

        Returns:
            A future with the results in order. If it is cancelled, the texts leave the queue.
        """
        self.check_room(len(values))
        if not values:
            empty: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
            empty.set_result([])
            return empty
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        ticket = _Ticket(len(values), future)
        queue, order = self._queues.setdefault(kind, []), time.monotonic()
        for place, (value, n) in enumerate(zip(values, tokens, strict=True)):
            order += n * _SECONDS_PER_TOKEN
            self._number += 1
            heapq.heappush(queue, _Item(order, self._number, ticket, place, value, n))
        self._count(len(values), sum(tokens))
        self._arrived.set()
        future.add_done_callback(self._forget_if_abandoned)
        return future

    def _forget_if_abandoned(self, future: asyncio.Future[list[Any]]) -> None:
        """Remove the texts of a request that nobody waits for any longer."""
        if not future.cancelled():
            if future.exception() is None:
                return
        else:
            self._metrics.abandoned.inc()
        for kind, queue in list(self._queues.items()):
            kept = [item for item in queue if item.ticket.future is not future]
            if len(kept) == len(queue):
                continue
            left = sum(item.tokens for item in queue) - sum(item.tokens for item in kept)
            self._count(len(kept) - len(queue), -left)
            heapq.heapify(kept)
            self._queues[kind] = kept
        self._drop_empty()

    def _count(self, texts: int, tokens: int) -> None:
        self._texts += texts
        self._tokens += tokens
        self._metrics.waiting.set(self._texts)

    def _drop_empty(self) -> None:
        for kind in [kind for kind, queue in self._queues.items() if not queue]:
            del self._queues[kind]

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            await self._read_received()
            kind, batch = self._take()
            if kind is None:
                self._arrived.clear()
                continue
            values = [item.value for item in batch]
            started = time.perf_counter()
            results = await loop.run_in_executor(self._pool, _run, kind, values)
            seconds, n_tokens = time.perf_counter() - started, sum(i.tokens for i in batch)
            self._metrics.batch(len(batch), n_tokens, seconds)
            self._rate += 0.2 * (max(1, n_tokens) / max(seconds, 1e-6) - self._rate)
            for item, result in zip(batch, results, strict=True):
                item.ticket.deliver(item.place, result)

    async def _read_received(self) -> None:
        """Let requests into the queue that have arrived but were not read yet.

        This only gives way to other work of the event loop; it never waits for a client.
        """
        quiet = 0
        for _ in range(_MOST_ROUNDS):
            before = self._number
            await asyncio.sleep(0)
            quiet = 0 if self._number > before else quiet + 1
            if quiet == _QUIET_ROUNDS or self._tokens >= self._limits.batch_tokens:
                return

    def _take(self) -> tuple[Kind | None, list[_Item]]:
        """Take the next batch: the text that is first in line, and others of its kind."""
        if not self._queues:
            return None, []
        kind = min(self._queues, key=lambda kind: self._queues[kind][0])
        batch: list[_Item] = []
        queue, n_tokens = self._queues[kind], 0
        most = self._limits.batch_tokens
        while queue and len(batch) < kind.most:
            if batch and n_tokens + queue[0].tokens > most:
                break
            batch.append(heapq.heappop(queue))
            n_tokens += batch[-1].tokens
        self._count(-len(batch), -n_tokens)
        self._drop_empty()
        return kind, batch


def _run(kind: Kind, values: list[Any]) -> list[Any]:
    """Run a batch; a text that fails does so alone, and its result is the error."""
    try:
        results = list(kind.run(values))
        if len(results) != len(values):
            raise RuntimeError(f"{len(results)} results for {len(values)} texts")
        return results
    except Exception as error:
        if len(values) == 1:
            # a future takes any exception but this one
            return [RuntimeError("stopped") if isinstance(error, StopIteration) else error]
    return [_run(kind, [value])[0] for value in values]
