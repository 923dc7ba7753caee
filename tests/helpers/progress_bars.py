"""Which bars of progress a test would have seen."""

from __future__ import annotations

import pytest

Bar = tuple[str, int | None, list[int]]


def record_progress(monkeypatch: pytest.MonkeyPatch, *modules: str) -> list[Bar]:
    """Let modules record their bars: what is done, of how much, and each step.

    Bars that are switched off are left out.
    """
    found: list[Bar] = []

    class Recorded:
        def __init__(self, what: str, total: int | None, unit: str = "", show: bool = True) -> None:
            self.steps: list[int] = []
            if show:
                found.append((what, total, self.steps))

        def __enter__(self) -> Recorded:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def advance(self, n: int) -> None:
            self.steps.append(n)

    for module in modules:
        monkeypatch.setattr(f"{module}.DelayedProgress", Recorded)
    return found
