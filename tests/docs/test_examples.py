"""The scripts of tasks in examples/ run, with the model of the command line: here a tiny one."""

import runpy
import sys

import pytest

from elmokit.tasks.names import TASKS
from helpers.docs import ROOT

SCRIPTS = sorted({f"{name}.py" for name in TASKS} - {"sentiment.py"})


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_runs(script, tiny_folder, monkeypatch, capsys):
    path = ROOT / "examples" / script
    monkeypatch.setattr(sys, "argv", [str(path), str(tiny_folder)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "\nepoch 1: loss " in printed
    after = printed.rsplit("dev ", 1)[1].splitlines()[1:]
    assert len(after) >= 2  # predictions
