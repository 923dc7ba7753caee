"""Running the command line, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Finished:
    """What a command gave back."""

    returncode: int
    stdout: str
    stderr: str


def run_process(*arguments, stdin: str | None = None, **keywords) -> Finished:
    """Run the command in a process of its own, as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "elmokit", *map(str, arguments)],
        input=None if stdin is None else stdin.encode(),
        capture_output=True,
        timeout=120,
        **keywords,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())
