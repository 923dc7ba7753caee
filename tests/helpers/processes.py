"""Run the command line in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Finished:
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def run_process(*arguments, stdin: str | None = None, **keywords) -> Finished:
    """Run ``elmokit`` with these arguments, as a user does."""
    return run_python("-m", "elmokit", *arguments, stdin=stdin, **keywords)


def run_python(*arguments, stdin: str | None = None, **keywords) -> Finished:
    """Run Python with these arguments."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        input=None if stdin is None else stdin.encode(),
        capture_output=True,
        timeout=120,
        **keywords,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def one_sentence(done, message):
    """Whether a command failed with an error of one line that contains a message."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("elmokit: ")
    assert message in done.stderr
    return done.stderr.count("\n") == 1
