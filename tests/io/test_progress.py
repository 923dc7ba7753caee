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
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = DelayedProgress("working", 100)
    assert bar.seconds_left() is None
    now[0] += 90  # a first piece that takes long is enough to tell
    bar.advance(10)
    assert bar.seconds_left() == pytest.approx(810)
    now[0] += 10
    assert bar.seconds_left() == pytest.approx(800)
    for _ in range(30):  # it goes faster now, and the slow beginning is forgotten
        now[0] += 5
        bar.advance(1)
    assert bar.seconds_left() == pytest.approx(60 * 5, rel=0.1)
    bar.advance(60)
    now[0] += 1000
    assert bar.seconds_left() == 0
    assert DelayedProgress("working", None).seconds_left() is None


def test_an_end_in_the_middle(terminal):
    with pytest.raises(KeyboardInterrupt), DelayedProgress("working", None) as bar:
        wait_for(terminal, "working")
        bar.advance(3)
        raise KeyboardInterrupt
    written = terminal.getvalue()
    time.sleep(0.2)
    assert terminal.getvalue() == written
    assert re.search(r"\x1b\[2K", written)  # the line is wiped out
