"""Semantic change as a table and dots."""

from dataclasses import replace

from elmokit.analysis.change import Estimate, WordChange
from elmokit.analysis.reports.change_report import change_report


def test_report(tmp_path):
    one = WordChange("a", 10, 1200, Estimate(0.5, 0.4, 0.6), 0.7, 0.1, Estimate(0.9, 0.8, 1.0))
    report = change_report([one, WordChange("b", 1, 2)])
    assert report.shown() == [
        ["a", "10", "1,200", "0.500", "0.400", "0.600", "0.100", "0.900", "0.800", "1.000"],
        ["b", "1", "2", *[""] * 7],
    ]
    assert report.title.endswith("fewer than 5 occurrences in one of them: b")
    assert report.about["too_rare"] == ["b"]
    assert report.about["uncorrected_prt"] == {"a": 0.7}
    assert change_report([WordChange("b", 1, 2)]).draw is None
    odd = replace(one, word="$_$")  # which is no formula
    change_report([odd, odd]).write(tmp_path / "odd")
    assert ">$_$</text>" in (tmp_path / "odd.svg").read_text(encoding="utf-8")
    many = change_report([one] * 200)
    assert many.size[1] < 12
    many.write(tmp_path / "x")
