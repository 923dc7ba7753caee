"""Progress in terminals, notebooks and logs: when it comes, and what it says."""

import io
import re
import sys
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
        bar._show_bar()
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
    monkeypatch.setattr(progress.sys, "stderr", None)  # as under pythonw
    with DelayedProgress("working", 2) as bar:
        assert bar._timer is None


def test_time_left(terminal, monkeypatch):
    """As rich estimates it from the last minute, not from what was done before."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 3600)
    with DelayedProgress("working", 100, "pieces") as bar:
        bar.advance(40)
        bar._show_bar()
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


def test_time_left_of_pieces_that_take_minutes(terminal, monkeypatch):
    """Four at a time, after half of the work was done by an earlier run."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 3600)
    with DelayedProgress("working", 200, "shards", already=100) as bar:
        bar._show_bar()
        assert "so far" in bar._line()
        now[0] += 125
        for _ in range(4):
            bar.advance(1)
        assert bar._seconds_left(now[0]) == 96 / 4 * 125
        bar._bar.refresh()
        assert "50:00" in terminal.getvalue()
        assert bar._line() == "working: 104 of 200 shards, 50 min left"


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


@pytest.fixture
def clock(monkeypatch):
    """A list with the time; timers do not fire by themselves."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for name in ("SHOW_AFTER_SECONDS", "NOTEBOOK_EVERY_SECONDS", "LOG_EVERY_SECONDS"):
        monkeypatch.setattr(progress, name, 3600)
    return now


def log_to(monkeypatch, stream):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


def test_lines_in_a_log(monkeypatch, clock):
    log = log_to(monkeypatch, io.StringIO())
    with DelayedProgress("embedding", 5000, "lines") as bar:
        clock[0] += 30
        bar._write_line()
        bar.advance(1000)  # done by an earlier run
        for _ in range(2):
            clock[0] += 30
            bar.advance(600)
            bar._write_line()
    bar._write_line()  # a timer that fires late
    assert log.getvalue().splitlines() == [
        "embedding: 0 of 5,000 lines, 30 s so far",
        "embedding: 1,600 of 5,000 lines, 3 min left",
        "embedding: 2,200 of 5,000 lines, 2 min left",
    ]


def test_a_log_gets_lines_by_itself(monkeypatch):
    log = log_to(monkeypatch, io.StringIO())
    monkeypatch.setattr(progress, "LOG_EVERY_SECONDS", 0.02)
    with DelayedProgress("working", 2):
        wait_for(log, "working: 0 of 2, 0 s so far\nworking: 0 of 2, 0 s so far\n")


def test_short_work_leaves_no_line_in_a_log(monkeypatch):
    log = log_to(monkeypatch, io.StringIO())
    assert progress.LOG_EVERY_SECONDS == 30
    with DelayedProgress("working", 2) as bar:
        assert bar._timer.interval == 30
        assert bar._timer.daemon  # does not keep the process alive
        bar.advance(2)
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    ("total", "done", "seconds", "line"),
    [
        (3_000_000, 1_500_000, 40, "reading: 1.5 of 3.0 MB, 40 s left"),
        (None, 1_500, 100, "reading: 1.5 kB, 2 min so far"),
        (4 * 10**9, 10**9, 3000, "reading: 1.0 of 4.0 GB, 2 h 30 min left"),
    ],
)
def test_bytes_in_a_line(monkeypatch, clock, total, done, seconds, line):
    log = log_to(monkeypatch, io.StringIO())
    with DelayedProgress("reading", total, "bytes") as bar:
        bar.advance(0)
        clock[0] += seconds
        bar.advance(done)
        bar._write_line()
    assert log.getvalue() == line + "\n"


def test_a_closed_log_does_not_end_the_work(monkeypatch, clock):
    log = log_to(monkeypatch, io.StringIO())
    with DelayedProgress("working", 2) as bar:
        log.close()
        bar._write_line()


def test_a_notebook_has_one_line_that_is_updated(monkeypatch, clock):
    """In a real kernel: tests/docs/test_notebooks.py."""

    class OutStream(io.StringIO):
        __module__ = "ipykernel.iostream"

    lines = []

    def display(bundle, *, raw, display_id=None):
        assert raw
        lines.append(bundle["text/plain"])
        return SimpleNamespace(update=display)

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    stream = log_to(monkeypatch, OutStream())
    with DelayedProgress("working", 20_000, "sentences") as bar:
        assert bar._timer.function == bar._update_cell
        bar.advance(0)
        clock[0] += 10
        bar.advance(10)
        bar._update_cell()
        clock[0] += 1
        bar.advance(19_989)
        bar._update_cell()
    assert lines == [
        "working: 10 of 20,000 sentences, 5 h 33 min left",
        "working: 19,999 of 20,000 sentences, 0 s left",
        "",
    ]
    assert stream.getvalue() == ""


def test_an_end_in_the_middle(terminal):
    with pytest.raises(KeyboardInterrupt), DelayedProgress("working", None) as bar:
        wait_for(terminal, "working")
        bar.advance(3)
        raise KeyboardInterrupt
    written = terminal.getvalue()
    time.sleep(0.2)
    assert terminal.getvalue() == written
    assert re.search(r"\x1b\[2K", written)  # the line is wiped out
