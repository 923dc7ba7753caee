"""Standard streams that are closed, broken, full, or not UTF-8, and the end of a command."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys

from elmokit.errors import shown

STOPPED = 130
"""Exit code after Ctrl-C."""

_BROKEN_PIPE = 141  # as if killed by SIGPIPE, which is how other programs end
_MOST = 2000  # characters of a message
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class StoppedError(Exception):
    """Ctrl-C ended a command; the message says what to do next."""


def open_streams() -> None:
    """Give every standard stream a file, and print what its encoding lacks as escapes.

    Without this, an output file could take the place of a stream that the shell has closed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(descriptor)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fail(message: str) -> None:
    """Print an error on standard error, in one line."""
    line = _CONTROL.sub(lambda match: repr(match[0])[1:-1], message)
    line = line if len(line) <= _MOST else line[: _MOST - 1] + "…"
    with contextlib.suppress(OSError):  # standard error may be full or closed
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        print(f"elmokit: {line}", file=sys.stderr, flush=True)


def unforeseen(error: OSError | SystemExit) -> int:
    """Explain an error of the operating system; returns the exit code.

    A reader such as ``head`` that has read enough closes the pipe, which is no error. Typer and
    rich turn that into an exit with 1.
    """
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(cause, BrokenPipeError):
        _discard_output()
        return _BROKEN_PIPE
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 2
    reason = error.strerror or str(error)
    if error.filename is not None:
        fail(f"cannot use {shown(str(error.filename))}: {reason}")
    elif error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF):
        _discard_output()
        fail(f"cannot write the result to standard output: {reason}")
    else:
        fail(reason)
    return 2


def _discard_output() -> None:
    """Send what is still to be printed nowhere: Python would try again at its end, and fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
