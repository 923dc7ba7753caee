"""Surprisal as a table and bars."""

import json

import numpy as np

from elmokit.analysis.reports.surprisal_report import surprisal_report
from elmokit.analysis.surprisal import Surprisal


def test_infinite_surprisal(tmp_path):
    bits = {"forward": np.array([np.inf, 1.0])}
    report = surprisal_report(Surprisal(["a", "b"], [True, True], bits))
    report.write(tmp_path / "x")
    assert json.loads((tmp_path / "x.json").read_text())["rows"][0]["forward"] is None
