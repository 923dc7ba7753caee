"""Estimates of size: how much text there is, and whether the output fits on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import OutputError
from elmokit.io.lines import total_bytes

_SAMPLE_TOKENS = 200_000
_SLACK = 1.25  # an estimate may be wrong by a quarter before it stops anybody


@dataclass(frozen=True)
class Sample:
    """The start of a text."""

    sentences: list[list[str]]
    share: float
    """Its share of the text; 1 if it is the whole text."""

    @property
    def n_tokens(self) -> int:
        """Estimated number of tokens of the whole text."""
        return round(sum(map(len, self.sentences)) / self.share)


def sample_start(
    files: Sequence[Path], read: Callable[[Callable[[int], None]], Iterator[list[str]]]
) -> Sample | None:
    """Read the start of a text; None if it can be read only once.

    Args:
        files: The files that contain the text.
        read: Yields the tokens of each sentence. It is passed a function to call now and then with
            the number of bytes read since the last call.
    """
    if not all(file.is_file() for file in files):  # standard input and pipes
        return None
    n_bytes = n_tokens = 0

    def count(n: int) -> None:
        nonlocal n_bytes
        n_bytes += n

    sentences = []
    for tokens in read(count):
        sentences.append(tokens)
        n_tokens += len(tokens)
        if n_tokens >= _SAMPLE_TOKENS and n_bytes:
            return Sample(sentences, min(1.0, n_bytes / (total_bytes(files) or n_bytes)))
    return Sample(sentences, 1.0)


def check_space(output: Path, n_bytes: int) -> None:
    """Raise if there is clearly too little disk space.

    Args:
        output: What will be written.
        n_bytes: Its estimated size.
    """
    free = shutil.disk_usage(output.parent).free
    if n_bytes > _SLACK * free:
        raise OutputError(
            f"{output} needs about {shown_bytes(n_bytes)} of disk space, but only "
            f"{shown_bytes(free)} is free; free some space, or choose another place"
        )


def shown_bytes(n_bytes: int) -> str:
    """A size to read, as 160 MB."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if n_bytes >= 10 * factor:
            return f"{n_bytes / factor:,.0f} {unit}"
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes / 1e3:,.0f} kB"
