"""A service in a process of its own, on a free port, as users run it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    url: str
    log: Path
    output: list[str] = field(default_factory=list)

    def stop(self, sign: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(sign)
        return self.process.wait(60)


@contextlib.contextmanager
def service(
    folder: Path, *arguments: object, code: str = "", **variables: str
) -> Iterator[Service]:
    """Start ``elmokit serve`` on a free port, and end it.

    Args:
        folder: For the log.
        *arguments: Of the command line.
        code: Python to run before the command, in the same process.
        **variables: Of the environment.
    """
    log = folder / "access.jsonl"
    start = f"{code}\nfrom elmokit.cli.main import main\nmain()"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", start, "serve", "--port", "0", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"http://\S+", line)
        assert match, (line, log.read_text())
        wait_until_ready(match[0])
        yield Service(process, match[0], log)
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def wait_until_ready(url: str, seconds: float = 30) -> None:
    import httpx

    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health").status_code == 200:
                return
        assert time.monotonic() < until, "the service does not answer"
        time.sleep(0.05)


def metric(url: str, name: str) -> float:
    """Return the sum of a counter or gauge over its labels."""
    import httpx

    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}[ {{]", line))


SLOW = """
import time
from elmokit.elmo import Elmo
before = Elmo.encode_sentences
def slow(self, texts, *given, **more):
    if any("slow" in text for text in texts):
        time.sleep(SECONDS)
    if any("crash" in text for text in texts):
        raise ValueError("crash with the secret words")
    return before(self, texts, *given, **more)
Elmo.encode_sentences = slow
"""
"""Makes a batch slow if a text has the word slow, and fail if one has the word crash."""


def slow(seconds: float) -> str:
    return SLOW.replace("SECONDS", str(seconds))
