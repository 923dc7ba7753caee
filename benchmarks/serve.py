"""The service under load: throughput and latency by the number of clients, overload, hang-ups.

    python benchmarks/serve.py [--seconds 15] [--rounds 3] [--overload 120] [--write]

Clients send single sentences, one after the other, and take vectors as npy. Server and clients are
pinned to one core each, and the server has one thread. The same sentences are encoded in a process
without a server, in one call, and by a plain FastAPI endpoint that calls ``encode`` per request. On
a machine with other work, sentences per CPU-second of the server are the fairer figure. Overload
sends twice as many requests as the service can answer. At the end, 1,000 clients hang up half-way.
--write stores the tables as benchmarks/results/serve.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SERVER, CLIENTS = 0, 1  # cores
TICKS = os.sysconf("SC_CLK_TCK")

PLAIN = """
import socket, sys
import numpy as np, io, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import Response
from elmokit import Elmo
elmo, app = Elmo.load("en", device="cpu"), FastAPI()
class Body(BaseModel):
    inputs: str
@app.post("/embed")
def embed(body: Body):
    file = io.BytesIO()
    np.save(file, elmo.encode_sentences([body.inputs], progress=False))
    return Response(file.getvalue(), media_type="application/x-npy")
bound = socket.socket()
bound.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[bound])
"""
"""What one would write first: an endpoint that encodes one text per request."""

INSIDE = """
import json, sys, time
from elmokit import Elmo
elmo, texts = Elmo.load("en", device="cpu"), json.load(sys.stdin)
elmo.encode_sentences(texts, progress=False)
start = time.process_time()
for _ in range(ROUNDS):
    elmo.encode_sentences(texts, progress=False)
print(ROUNDS * len(texts) / (time.process_time() - start))
"""
"""Encodes all sentences in one call, as often as asked; prints sentences per CPU-second."""


@dataclass
class Load:
    """What clients saw, and what it cost the server."""

    seconds: float
    cpu: float
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def per_second(self) -> float:
        """Answers per second of wall time."""
        return len(self.latencies) / self.seconds

    @property
    def per_cpu_second(self) -> float:
        """Answers per second of the server's CPU time."""
        return len(self.latencies) / self.cpu

    def percentile(self, p: float) -> float:
        """Return a percentile of the latencies, in seconds."""
        ranked = sorted(self.latencies)
        return ranked[min(len(ranked) - 1, int(p / 100 * len(ranked)))] if ranked else 0.0


class Server:
    """A server in a process of its own, on its own core."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
            preexec_fn=lambda: os.sched_setaffinity(0, {SERVER}),
        )
        assert self.process.stdout is not None
        found = re.search(r"http://[\d.]+:(\d+)", self.process.stdout.readline())
        assert found, "the server did not start"
        self.port = int(found[1])

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def megabytes(self) -> float:
        """Memory in use."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self) -> int:
        """End it; returns the exit code."""
        self.process.terminate()
        return self.process.wait(120)


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


async def ask(
    port: int, stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], text: str
) -> int:
    """Send a sentence over a connection, and return the status of the answer."""
    reader, writer = stream
    writer.write(request(port, text))
    status, length = 0, 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        if not status:
            status = int(line.split()[1])
        elif line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    await reader.readexactly(length)
    if not status:
        raise ConnectionResetError("no answer")
    return status


def request(port: int, text: str) -> bytes:
    """Return the bytes of a request for a sentence's vector."""
    body = json.dumps({"inputs": text}).encode()
    head = (
        f"POST /embed HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/x-npy\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def closed_loop(server: Server, texts: list[str], clients: int, seconds: float) -> Load:
    """Let clients send one sentence after the other."""
    streams = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(clients)]
    load, start, cpu = Load(0, 0), time.perf_counter(), server.cpu
    until = start + seconds

    async def client(number: int) -> None:
        at = number * 7
        while time.perf_counter() < until:
            sent = time.perf_counter()
            status = await ask(server.port, streams[number], texts[at % len(texts)])
            load.statuses[status] += 1
            if status == 200:
                load.latencies.append(time.perf_counter() - sent)
            at += 1

    await asyncio.gather(*map(client, range(clients)))
    load.seconds, load.cpu = time.perf_counter() - start, server.cpu - cpu
    for _, writer in streams:
        writer.close()
    return load


async def overload(
    server: Server, texts: list[str], rate: float, seconds: float
) -> tuple[Load, list[float]]:
    """Send requests at a rate, whether they are answered or not; also the memory over time."""
    load, start, cpu = Load(0, 0), time.perf_counter(), server.cpu
    free: list[tuple[float, tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = []
    memory: list[float] = []

    async def one(text: str) -> None:
        sent = time.perf_counter()
        try:
            if free and sent - free[-1][0] < 5:  # the server closes connections that are idle
                stream = free.pop()[1]
            else:
                stream = await asyncio.open_connection("127.0.0.1", server.port)
            status = await ask(server.port, stream, text)
        except OSError:
            load.statuses[0] += 1
            return
        now = time.perf_counter()
        load.statuses[status] += 1
        if status == 200:
            load.latencies.append(now - sent)
        free.append((now, stream))

    tasks: set[asyncio.Task[None]] = set()
    n = 0
    while (passed := time.perf_counter() - start) < seconds:
        while n < passed * rate:
            task = asyncio.create_task(one(texts[n % len(texts)]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            n += 1
        if len(memory) <= passed / 5:
            memory.append(server.megabytes)
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    load.seconds, load.cpu = time.perf_counter() - start, server.cpu - cpu
    memory.append(server.megabytes)
    return load, memory


async def hang_ups(server: Server, texts: list[str], clients: int = 1000) -> float:
    """Let clients hang up, half of them in mid-request; seconds until the queue is empty."""

    async def one(number: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        whole = request(server.port, texts[number % len(texts)])
        writer.write(whole if number % 2 else whole[: len(whole) // 2])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    for first in range(0, clients, 250):
        await asyncio.gather(*map(one, range(first, first + 250)))
    start = time.perf_counter()
    while await waiting(server) > 0:
        await asyncio.sleep(0.1)
        assert time.perf_counter() - start < 60, "the queue does not become empty"
    return time.perf_counter() - start


async def waiting(server: Server) -> float:
    """Return the number of texts in the queue."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return sum(float(n) for n in re.findall(r"^elmokit_queue_texts\{.*\} (\S+)$", text, re.M))


def inside(texts: list[str], rounds: int) -> float:
    """Return sentences per CPU-second of ``encode_sentences`` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", INSIDE.replace("ROUNDS", str(rounds))],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
        preexec_fn=lambda: os.sched_setaffinity(0, {SERVER}),
    )
    return float(done.stdout)


def main() -> None:
    """Measure, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=15, help="for each number of clients")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--overload", type=float, default=120, help="seconds at twice the capacity")
    parser.add_argument("--write", action="store_true", help="store the tables")
    given = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("this benchmark needs two cores")
    from elmokit.serve.bundled_index import stored_sentences

    texts = stored_sentences()[:512]
    os.sched_setaffinity(0, {CLIENTS})
    lines = asyncio.run(measure(texts, given))
    print("\n".join(lines))
    if given.write:
        (HERE / "results" / "serve.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


async def measure(texts: list[str], given: argparse.Namespace) -> list[str]:
    """Run everything; returns the lines of the report."""
    command = [sys.executable, "-m", "elmokit", "serve", "--port", "0", "--no-access-log"]
    service, plain = Server([*command, "--device", "cpu"]), Server([sys.executable, "-c", PLAIN])
    loads: dict[tuple[str, int], list[Load]] = {}
    alone: list[float] = []
    for server in (service, plain):
        await closed_loop(server, texts, 16, 5)  # words are cached
    for number in range(given.rounds):
        alone.append(await asyncio.to_thread(inside, texts, 2))
        for clients in given.clients:
            for name, server in (("service", service), ("plain", plain)):
                load = await closed_loop(server, texts, clients, given.seconds)
                loads.setdefault((name, clients), []).append(load)
                print(
                    f"round {number}: {name}, {clients} clients: {load.per_cpu_second:.1f} per "
                    f"CPU-second (alone {alone[-1]:.1f}), {load.per_second:.1f} per second",
                    file=sys.stderr,
                )
    plain.stop()
    return [
        *about(texts),
        "",
        *throughput(loads, alone, given.clients),
        "",
        *await faults(service, texts, loads, given),
    ]


def about(texts: list[str]) -> list[str]:
    """Say what was measured, and where."""
    import fastapi
    import uvicorn
    from cpu import processor, versions

    words = sum(text.count(" ") + 1 for text in texts) / len(texts)
    day = datetime.datetime.now(datetime.timezone.utc).date()
    machine = "AMD EPYC" if "EPYC" in processor() else processor()
    return [
        f"{versions()}, FastAPI {fastapi.__version__}, uvicorn {uvicorn.__version__}, {machine}, "
        f"{os.cpu_count()} cores, {day}. The bundled model `en` in float32; {len(texts)} sentences "
        f"of {words:.1f} tokens on average. The server runs on one core with one thread, the "
        f"clients on another. Load average {os.getloadavg()[0]:.1f}.",
    ]


def throughput(
    loads: dict[tuple[str, int], list[Load]], alone: list[float], clients: list[int]
) -> list[str]:
    """Return the table of numbers of clients; medians of the rounds."""
    base = statistics.median(alone)
    lines = [
        f"`encode_sentences` on all sentences at once: {base:.1f} sentences per CPU-second.",
        "",
        "| clients | server | sentences per CPU-second | share of `encode` | per second | p50, ms "
        "| p99, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in clients:
        for name in ("service", "plain"):
            some = loads[name, n]
            shares = [load.per_cpu_second / a for load, a in zip(some, alone, strict=True)]
            cpu = statistics.median(load.per_cpu_second for load in some)
            wall = statistics.median(load.per_second for load in some)
            p50, p99 = (
                1000 * statistics.median(load.percentile(p) for load in some) for p in (50, 99)
            )
            shown = "elmokit serve" if name == "service" else "one `encode` per request"
            lines.append(
                f"| {n} | {shown} | {cpu:.1f} | {statistics.median(shares):.0%} | {wall:.1f} | "
                f"{p50:.0f} | {p99:.0f} |"
            )
    ratios = {
        n: statistics.median(
            a.per_cpu_second / b.per_cpu_second
            for a, b in zip(loads["service", n], loads["plain", n], strict=True)
        )
        for n in clients
    }
    shown = ", ".join(f"{ratio:.2f} with {n}" for n, ratio in ratios.items())
    return [*lines, "", f"Service over one `encode` per request, per CPU-second: {shown} clients."]


async def faults(
    service: Server,
    texts: list[str],
    loads: dict[tuple[str, int], list[Load]],
    given: argparse.Namespace,
) -> list[str]:
    """Return what happens under overload, when clients hang up, and at the end."""
    capacity = max(
        load.per_second for (name, _), some in loads.items() for load in some if name == "service"
    )
    load, memory = await overload(service, texts, 2 * capacity, given.overload)
    statuses = ", ".join(f"{status}: {n:,}" for status, n in sorted(load.statuses.items()) if n)
    seconds = await hang_ups(service, texts)
    left = await waiting(service)
    code = await asyncio.to_thread(service.stop)
    middle = memory[len(memory) // 4]
    return [
        f"Overload: {2 * capacity:.0f} requests per second for {given.overload:.0f} s. Answers "
        f"{statuses} (0 would be none at all). Of those answered with 200: p50 "
        f"{load.percentile(50):.1f} s, p99 {load.percentile(99):.1f} s. Memory {memory[0]:.0f} MB "
        f"before, {middle:.0f} MB after a quarter of the time, {max(memory):.0f} MB at most, "
        f"{memory[-1]:.0f} MB at the end.",
        "",
        f"1,000 clients that hang up half-way: the queue was empty {seconds:.1f} s after the last "
        f"one, with {left:.0f} texts waiting. SIGTERM: exit code {code}.",
    ]


if __name__ == "__main__":
    main()
