"""Lines of a text file or of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import InputError


def read_lines(path: Path | None) -> Iterator[str]:
    """Lines without their ends; None reads standard input."""
    label = "standard input" if path is None else str(path)
    try:
        with sys.stdin.buffer if path is None else open(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                try:
                    yield raw.decode("utf-8").strip()
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"line {number} of {label} is not valid UTF-8 (byte "
                        f"0x{raw[error.start]:02x} at position {error.start + 1}); convert the "
                        "file, for instance with: iconv -f latin1 -t utf-8"
                    ) from error
    except FileNotFoundError:
        raise InputError(
            f"there is no file {label}; check the path, or give - for standard input"
        ) from None
    except (IsADirectoryError, PermissionError) as error:
        raise InputError(f"cannot read {label}: {error.strerror}") from error


def count_lines(path: Path | None) -> int | None:
    """Lines of a regular file, or None for what can be read only once."""
    if path is None or not path.is_file():
        return None
    n, last = 0, b"\n"
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 24):
                n += block.count(b"\n")
                last = block[-1:]
    except OSError:  # reading the lines themselves will say what is wrong
        return None
    return n + (last != b"\n")
