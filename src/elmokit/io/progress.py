"""Progress of long work on standard error: a bar in a terminal, a line in notebooks and log files.

The bar is drawn by rich. Only the delay is written by hand, because rich shows a bar at once, even
for quick work. Elsewhere, a line of text says how much is done: updated every second in a notebook,
and a new line every half minute in a log. A timer starts both, so they also appear if the first
piece of work takes long.

In a notebook the line is an output of the cell of its own, which is updated in place. On standard
error, every update would stay in the stored notebook.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOW_AFTER_SECONDS = 2.0
NOTEBOOK_EVERY_SECONDS = 1.0
LOG_EVERY_SECONDS = 30.0
enabled = True  # False shows nothing at all

_SPEED_SECONDS = 60.0  # the time left follows the speed of the last minute


class DelayedProgress:
    """Shows progress and the time left on standard error, if the work takes long.

    In a terminal a bar appears after two seconds, in a notebook a line of text. Everywhere else, a
    line is written every 30 seconds.

    Args:
        what: What is being done, in a few words.
        total: The amount of work; None if unknown.
        unit: What is counted. Bytes are shown as kB, MB and so on.
        show: False never shows anything.
        already: What earlier runs have done, for work whose pieces take minutes. The time left then
            follows the speed of the whole run: the last minute may have no piece, or several that
            ended at once.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str = "",
        show: bool = True,
        already: int | None = None,
    ) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._already = already
        self._stream = sys.stderr
        self._wanted = show and enabled and self._stream is not None
        self._started = time.monotonic()
        self._done = already or 0
        self._first: tuple[float, int] | None = None  # when the first piece was done, and its size
        self._lock = threading.Lock()
        self._ended = False
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._cell: Any = None  # the output in a notebook

    def __enter__(self) -> DelayedProgress:
        self._started = time.monotonic()
        if self._wanted:
            if self._stream.isatty():
                self._later(SHOW_AFTER_SECONDS, self._show_bar)
            elif _in_notebook():
                self._later(SHOW_AFTER_SECONDS, self._update_cell)
            else:
                self._later(LOG_EVERY_SECONDS, self._write_line)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()
            if self._cell is not None:
                self._cell.update({"text/plain": ""}, raw=True)

    def advance(self, n: int) -> None:
        """Count n more as done."""
        self._done += n
        if self._first is None:
            self._first = time.monotonic(), self._done
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def describe(self, what: str) -> None:
        """Change what is shown to be done."""
        self._what = what
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what)

    def _later(self, seconds: float, show: Callable[[], None]) -> None:
        self._timer = threading.Timer(seconds, show)
        self._timer.daemon = True
        self._timer.start()

    def _write_line(self) -> None:
        with self._lock:
            if not self._ended:
                self._write(self._line() + "\n")
                self._later(LOG_EVERY_SECONDS, self._write_line)

    def _update_cell(self) -> None:
        display = import_module("IPython.display").display  # a notebook has it
        with self._lock:
            if not self._ended:
                line = {"text/plain": self._line()}
                if self._cell is None:
                    self._cell = display(line, raw=True, display_id=True)
                else:
                    self._cell.update(line, raw=True)
                self._later(NOTEBOOK_EVERY_SECONDS, self._update_cell)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a closed log must not end the work
            self._stream.write(text)
            self._stream.flush()

    def _line(self) -> str:
        """Say what is done, such as "embedding: 1,200 of 5,000 lines, 2 min left"."""
        done, total, now = self._done, self._total, time.monotonic()
        if self._unit == "bytes":
            scale, unit = _byte_unit(total or done)
            amounts = [f"{n / scale:,.1f}" for n in (done, total) if n is not None]
        else:
            unit = self._unit
            amounts = [f"{n:,}" for n in (done, total) if n is not None]
        text = f"{self._what}: {' of '.join(amounts)} {unit}".rstrip()
        left = self._seconds_left(now)
        if left is None:
            return f"{text}, {_duration(now - self._started)} so far"
        return f"{text}, {_duration(left)} left"

    def _seconds_left(self, now: float) -> float | None:
        """The time left at the speed of the run so far; None if that is unknown."""
        done, total = self._done, self._total
        if self._already is None:
            # what was done before the first piece came, such as in an earlier run, took no time now
            since, before = self._first or (now, done)
        else:
            since, before = self._started, self._already
        if total is None or done <= before or now <= since:
            return None
        return (now - since) / (done - before) * max(0, total - done)

    def _show_bar(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        seconds_left = self._seconds_left

        class TimeLeftColumn(ProgressColumn):
            """The time left at the speed of the whole run."""

            def render(self, task: Task) -> Text:
                left = seconds_left(time.monotonic())
                return Text("-:--:--" if left is None else clock_time(left), "progress.remaining")

        in_bytes = self._unit == "bytes"
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn() if in_bytes else MofNCompleteColumn(),
            TextColumn("" if in_bytes else self._unit),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn() if self._already is None else TimeLeftColumn(),
            console=Console(file=self._stream),
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


def _in_notebook() -> bool:
    """Return whether standard error goes to a Jupyter notebook."""
    return type(sys.stderr).__module__.startswith("ipykernel")


def _byte_unit(n: int) -> tuple[int, str]:
    units = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
    return next((unit for unit in units if n >= unit[0]), (1, "bytes"))


def _duration(seconds: float) -> str:
    """Return a time as a person would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def long_duration(seconds: float) -> str:
    """A time of any length, as 5 h 12 min, 3.2 days or 1.4 years."""
    days = seconds / 86_400
    if days < 2:
        return _duration(seconds)
    return f"{days:,.1f} days" if days < 730 else f"{days / 365.25:,.1f} years"


def clock_time(seconds: float) -> str:
    """A duration as a clock shows it, as 1:20 or 1:05:00."""
    minutes, seconds = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
