"""Stopping a run well: Ctrl-C or SIGTERM finishes the step, saves and leaves.

A second Ctrl-C leaves at once. A second SIGTERM does not: Slurm sends one to every process, and
torchrun passes its own on. Before training starts there is nothing to save, and the first signal
leaves at once.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

STOPPING = "stopping after this step; press Ctrl-C again to stop at once"


class StopSignal:
    """Handles Ctrl-C and SIGTERM while it is entered.

    Only the main thread receives signals; in other threads it handles none.

    Args:
        tell: Called with :data:`STOPPING` when a signal arrives during training.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        """Whether to save and stop after the current step."""
        self._tell, self._can_wait = tell, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def after_the_step(self) -> Iterator[None]:
        """Inside, the first signal only sets :attr:`asked`."""
        self._can_wait = True
        try:
            yield
        finally:
            self._can_wait = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked and self._can_wait and number == signal.SIGTERM:
            return
        if self.asked or not self._can_wait:
            raise KeyboardInterrupt
        self.asked = True
        with contextlib.suppress(RuntimeError):  # the signal came in the middle of a print
            self._tell(STOPPING)
