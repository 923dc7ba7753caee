"""A progress bar that stays away from what is quick, and from what is not a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

SHOW_AFTER_SECONDS = 2.0

_RATE_SECONDS = 60.0  # of the last minute: what was skipped, or ran warm, is soon forgotten
_MARK_SECONDS = 0.1


class DelayedProgress:
    """Shows a bar with the time left on standard error, once the work has taken two seconds.

    A timer shows it, so that it is there even where the first piece of work takes long.

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
        self._marks: deque[tuple[float, int]] = deque([(self._started, 0)])  # how much when
        self._lock = threading.Lock()
        self._ended = False
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> DelayedProgress:
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
        if not self._wanted:
            return
        now = time.monotonic()
        if now - self._marks[-1][0] > _MARK_SECONDS:
            self._marks.append((now, self._done))
            while len(self._marks) > 2 and self._marks[1][0] < now - _RATE_SECONDS:
                self._marks.popleft()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def seconds_left(self) -> float | None:
        """How long it will take yet; None where nobody can know."""
        (first, done_first), (last, done_last) = self._marks[0], self._marks[-1]
        if self._total is None or done_last == done_first:
            return None
        per_piece = (last - first) / (done_last - done_first)
        return max(0.0, last + per_piece * (self._total - done_last) - time.monotonic())

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.text import Text

        class TimeLeftColumn(ProgressColumn):
            def render(_, task: Task) -> Text:  # noqa: N805  # self is the whole bar
                left = self.seconds_left()
                shown = "-:--:--" if left is None else str(timedelta(seconds=round(left)))
                return Text(shown, style="progress.remaining")

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self._unit),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeftColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            get_time=time.monotonic,
        )
        task = bar.add_task(self._what, total=self._total, completed=self._done)
        bar.tasks[0].start_time = self._started
        with self._lock:
            if not self._ended:
                bar.start()
                self._task, self._bar = task, bar
