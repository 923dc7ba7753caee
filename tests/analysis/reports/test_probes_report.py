"""Probes as a table and bars."""

from elmokit.analysis.probes.probing import ProbeResult, ProbeScore
from elmokit.analysis.reports.probes_report import probe_report


def test_report_of_a_model_with_one_layer(tmp_path):

    score = ProbeScore(90.0, 60.0)
    result = ProbeResult([score] * 2, score, score, score, [0.5, 0.5], ["A"], 10, 5, 0.1)
    report = probe_report(result, ["token layer", "LSTM layer 1"])
    assert report.shown()[0] == ["token layer", "90.00", "60.00", "30.00"]
    report.write(tmp_path / "x")
