"""The progress bar: when it comes, and what it says."""

import io
import re
import time
from types import SimpleNamespace

import pytest

from elmokit.io import progress
from elmokit.io.progress import DelayedProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    found = Terminal()
    # pytest puts a stderr of its own in place before each test
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.05)
    return found


def wait_for(terminal, text):
    until = time.monotonic() + 10
    while text not in terminal.getvalue():
        assert time.monotonic() < until, terminal.getvalue()
        time.sleep(0.02)


def test_it_comes_without_any_advance(terminal):
    with DelayedProgress("working", 100, "pieces"):
        wait_for(terminal, "0/100")
    assert "working" in terminal.getvalue()
    assert "pieces" in terminal.getvalue()


def test_what_was_done_before_it_came(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 3600)
    with DelayedProgress("working", 100, "pieces") as bar:
        bar._started -= 3600
        bar.advance(25)
        bar._show()
        wait_for(terminal, "25/100")
    assert "1:00:0" in terminal.getvalue()  # the time since the beginning, not since it is shown


def test_nothing_for_what_is_quick(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 60)
    with DelayedProgress("working", 2) as bar:
        assert bar._timer.is_alive()
        bar.advance(2)
    bar._timer.join(10)  # the one that would have shown it
    assert not bar._timer.is_alive()
    assert terminal.getvalue() == ""


def test_nothing_where_nobody_looks(terminal, monkeypatch):
    with DelayedProgress("working", 2, show=False) as bar:
        time.sleep(0.15)
        bar.advance(2)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    with DelayedProgress("working", 2):
        time.sleep(0.15)


def test_time_left(terminal, monkeypatch):
    """As rich estimates it from the last minute, not from what was done before."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 3600)
    with DelayedProgress("working", 100, "pieces") as bar:
        bar.advance(40)
        bar._show()
        (task,) = bar._bar.tasks
        assert task.time_remaining is None
        for _ in range(10):
            now[0] += 6
            bar.advance(1)
        assert task.time_remaining == 50 * 6
        for _ in range(20):  # slower now, and the fast beginning is forgotten
            now[0] += 12
            bar.advance(1)
        assert task.time_remaining == 30 * 12
        bar._bar.refresh()
        assert "0:06:00" in terminal.getvalue()


def test_bytes_are_shown_in_units(terminal):
    with DelayedProgress("reading", 3_000_000, "bytes") as bar:
        bar.advance(1_500_000)
        wait_for(terminal, "1.5/3.0 MB")
    assert "bytes" not in terminal.getvalue()


def test_no_bar_at_all(terminal, monkeypatch):
    monkeypatch.setattr(progress, "enabled", False)
    with DelayedProgress("working", 2) as bar:
        assert bar._timer is None
    assert terminal.getvalue() == ""


def test_an_end_in_the_middle(terminal):
    with pytest.raises(KeyboardInterrupt), DelayedProgress("working", None) as bar:
        wait_for(terminal, "working")
        bar.advance(3)
        raise KeyboardInterrupt
    written = terminal.getvalue()
    time.sleep(0.2)
    assert terminal.getvalue() == written
    assert re.search(r"\x1b\[2K", written)  # the line is wiped out
