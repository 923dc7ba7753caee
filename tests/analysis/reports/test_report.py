"""Tables and pictures of analyses."""

import json

import numpy as np
import pytest

from elmokit.analysis.reports.report import Report, fixed
from elmokit.errors import OutputError


def draw(figure):
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4])
    axes.set_title("河岸 bank")


def make():
    rows = [["a", 1.5, 1200, None], ["河", float("nan"), 2, "x"]]
    return Report("t", ["what", "f", "n", "o"], rows, {"words": 7}, draw)


def test_files(tmp_path):
    written = make().write(tmp_path / "out.png")
    assert [p.name for p in written] == ["out.json", "out.csv", "out.png", "out.svg"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    values = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert values["words"] == 7
    assert values["rows"][1] == {"what": "河", "f": None, "n": 2, "o": "x"}
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1] == "a,1.5,1200,"
    again = make().write(tmp_path / "again")
    assert again[3].read_bytes() == written[3].read_bytes()


def test_pictures_are_not_blank(tmp_path):
    from matplotlib.image import imread

    make().write(tmp_path / "out")
    assert len(np.unique(imread(tmp_path / "out.png").reshape(-1, 4), axis=0)) > 10


def test_terminal():
    assert make().shown() == [["a", "1.500", "1,200", ""], ["河", "–", "2", "x"]]


def test_bad_places(tmp_path):
    with pytest.raises(OutputError, match="folder"):
        make().write(tmp_path)
    with pytest.raises(OutputError, match="does not exist"):
        make().write(tmp_path / "no" / "out")


def test_a_rounded_zero_has_no_sign():
    assert [fixed(x) for x in (-0.0004, -0.0, 0.0, -0.0006)] == [
        "0.000",
        "0.000",
        "0.000",
        "-0.001",
    ]
    assert fixed(-0.04, 1) == "0.0"
    assert fixed(-0.4, 0) == "0"
    assert fixed(float("-inf"), 1) == "-inf"
    assert Report("t", ["a", "b"], [["x", -1e-9]]).shown() == [["x", "0.000"]]


def test_all_files_or_none(tmp_path):
    (tmp_path / "x.json").write_text("old")

    def fails(figure):
        raise OutputError("no space left")

    report = Report("t", ["a"], [["x"]], draw=fails)
    with pytest.raises(OutputError):
        report.write(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "old"


def test_a_path_that_is_not_utf8(tmp_path):
    Report("t", ["a"], [["x"]], {"text": "\udcff.txt"}).write(tmp_path / "x")
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["text"] == "\udcff.txt"
