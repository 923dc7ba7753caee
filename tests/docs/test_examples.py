"""The scripts in examples/ run. They take the model from the command line: here a tiny one."""

import runpy
import sys

import pytest

from helpers.docs import ROOT

INTEGRATIONS = {"datasets_map.py"}  # need other packages; tests/integrations runs them
SCRIPTS = sorted({path.name for path in (ROOT / "examples").glob("*.py")} - INTEGRATIONS)


def test_there_is_one_script_per_task():
    from elmokit.tasks.names import TASKS

    assert {f"{name}.py" for name in TASKS} - {"sentiment.py"} == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_runs(script, tiny_folder, monkeypatch, capsys):
    path = ROOT / "examples" / script
    monkeypatch.setattr(sys, "argv", [str(path), str(tiny_folder)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "\nepoch 1: loss " in printed
    after = printed.rsplit("dev ", 1)[1].splitlines()[1:]
    assert len(after) >= 2  # predictions
