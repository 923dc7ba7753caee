"""A Ray cluster of two nodes on this machine, on loopback addresses, with a token of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from helpers.pretraining import free_port

HEAD, SECOND = "127.0.0.2", "127.0.0.3"  # Ray replaces 127.0.0.1 by an address of the network
START_SECONDS = 90


class RayCluster:
    """A head and a second node with one CPU each; the faults of workers are in ``environment``."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short: it holds sockets
        token = self.folder / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        self.environment = {
            **os.environ,
            **environment,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_raylet_graceful_shutdown_timeout_s": "1",
        }
        self.address = f"{HEAD}:{free_port()}"
        self.nodes: list[subprocess.Popen] = []

    def start(self, head_cpus: int = 1, second: bool = True) -> RayCluster:
        try:
            port = self.address.rpartition(":")[2]
            self.start_node("--head", f"--port={port}", f"--node-ip-address={HEAD}",
                            "--include-dashboard=false", f"--temp-dir={self.folder}",
                            f"--num-cpus={head_cpus}")  # fmt: skip
            if second:
                self.start_second()
        except BaseException:
            self.stop()
            raise
        return self

    def start_second(self, **environment: str) -> None:
        self.start_node(f"--address={self.address}", f"--node-ip-address={SECOND}",
                        "--num-cpus=1", **environment)  # fmt: skip

    def start_node(self, *arguments: str, **environment: str) -> None:
        log = self.folder / f"node-{len(self.nodes)}.log"
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block",
                   "--object-store-memory=100000000", "--disable-usage-stats"]  # fmt: skip
        with log.open("wb") as file:
            node = subprocess.Popen(
                [*command, *arguments],
                env=self.environment | environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.nodes.append(node)
        until = time.monotonic() + START_SECONDS
        while "Ray runtime started" not in log.read_text():
            assert node.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)

    def kill_node(self, number: int) -> None:
        """Kill all processes of a node at once, as if its machine lost power."""
        node = self.nodes[number]
        for pid in [*descendants(node.pid), node.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait(30)

    def workers(self) -> list[int]:
        """Processes of actors that compute shards."""
        found = [pid for node in self.nodes for pid in descendants(node.pid)]
        return [pid for pid in found if b"_Actor" in _command(pid)]

    def stop(self) -> None:
        for number in reversed(range(len(self.nodes))):
            self.kill_node(number)
        shutil.rmtree(self.folder, ignore_errors=True)


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
