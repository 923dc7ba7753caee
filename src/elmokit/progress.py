"""A progress bar that stays away from what is quick, and from what is not a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOW_AFTER_SECONDS = 2.0


class DelayedProgress:
    """Shows a bar with the time left on standard error, once the work has taken two seconds.

    Args:
        what: What is being done, a few words.
        total: How much there is to do, or None where that is not known.
        unit: What is counted.
        show: False for never; True for a terminal only.
    """

    def __init__(self, what: str, total: int | None, unit: str = "", show: bool = True) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._wanted = show and sys.stderr.isatty()
        self._started = time.monotonic()
        self._done = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> DelayedProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, n: int) -> None:
        """Count n more as done."""
        self._done += n
        if not self._wanted:
            return
        if self._bar is None and time.monotonic() - self._started > SHOW_AFTER_SECONDS:
            self._show()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self._unit),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._what, total=self._total, completed=self._done)
        self._bar.start()
