"""A progress bar for long work in a terminal, drawn by rich.

Only the delay is written by hand, because rich shows a bar at once, even for quick work. A timer
starts the bar, so it also appears if the first piece of work takes long.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOW_AFTER_SECONDS = 2.0
enabled = True  # False shows no bar at all

_SPEED_SECONDS = 60.0  # the time left follows the speed of the last minute


class DelayedProgress:
    """Shows a bar with the time left on standard error after two seconds of work.

    Nothing is shown if standard error is not a terminal.

    Args:
        what: What is being done, in a few words.
        total: The amount of work; None if unknown.
        unit: What is counted. Bytes are shown as kB, MB and so on.
        show: False never shows a bar.
    """

    def __init__(self, what: str, total: int | None, unit: str = "", show: bool = True) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._wanted = show and enabled and sys.stderr.isatty()
        self._started = time.monotonic()
        self._done = 0
        self._lock = threading.Lock()
        self._ended = False
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> DelayedProgress:
        self._started = time.monotonic()
        if self._wanted:
            self._timer = threading.Timer(SHOW_AFTER_SECONDS, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()

    def advance(self, n: int) -> None:
        """Count n more as done."""
        self._done += n
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        in_bytes = self._unit == "bytes"
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn() if in_bytes else MofNCompleteColumn(),
            TextColumn("" if in_bytes else self._unit),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            get_time=time.monotonic,
            speed_estimate_period=_SPEED_SECONDS,
        )
        task = bar.add_task(self._what, total=self._total)
        bar.tasks[0].start_time = self._started
        bar.update(task, completed=self._done)
        with self._lock:
            if not self._ended:
                bar.start()
                self._task, self._bar = task, bar
