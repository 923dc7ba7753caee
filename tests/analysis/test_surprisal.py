"""Surprisal of the words of a sentence, and the command."""

import csv
import json
import math
import re

import numpy as np
import pytest

from elmokit.analysis.reports.surprisal_report import surprisal_report
from elmokit.analysis.surprisal import surprisal
from helpers.pictures import n_colours


def test_bits(lm):
    found = surprisal(lm, "the zebra sat")
    (score,) = lm.score(["the zebra sat"])
    np.testing.assert_allclose(2.0 ** -found.bits["forward"], np.exp(score.forward), rtol=1e-5)
    np.testing.assert_allclose(2.0 ** -found.bits["backward"], np.exp(score.backward), rtol=1e-5)
    np.testing.assert_allclose(
        found.bits["mean"], -(score.forward + score.backward) / 2 / math.log(2), rtol=1e-5
    )
    assert found.known == [True, False, True]
    report = surprisal_report(found)
    assert [row[0] for row in report.rows] == ["the", "zebra", "sat"]
    assert [row[-1] for row in report.rows] == ["", "<UNK>", ""]


def test_command(cli, lm_folder, tmp_path):
    done = cli("surprisal", "the zebra $ sat $ 银行 <b>", "-m", lm_folder,
               "--out", tmp_path / "x", "--html", tmp_path / "x.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "银行" in done.stdout
    assert "<UNK>" in done.stdout
    assert "\x1b" not in done.stdout
    assert "x.html" in done.stdout
    assert "&lt;b&gt;" in (tmp_path / "x.html").read_text(encoding="utf-8")
    assert n_colours(tmp_path / "x.png") > 20
    assert "zebra*" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["scored as"] == "<UNK>"
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    mean = np.mean([float(row["mean"]) for row in rows])
    assert values["means"]["mean"] == pytest.approx(mean)


def test_colours(cli, lm_folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = cli("surprisal", "the [red]cat[/red]", "-m", lm_folder).stdout
    assert "\x1b[" in out
    assert "[red]cat[/red]" in re.sub(r"\x1b\[[\d;]*m", "", out)
    assert "14 or more" in out


def test_short_and_long(cli, lm_folder, tmp_path):
    out = ["-m", lm_folder, "--out", tmp_path / "x"]
    assert cli("surprisal", "cat", *out).returncode == 0
    assert cli("surprisal", "the cat sat " * 70, *out).returncode == 0
    assert "the first 200 of 210 tokens" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    for empty in ("", "  "):
        done = cli("surprisal", empty, *out)
        assert done.returncode == 2
        assert "no tokens" in done.stderr


def test_no_softmax(cli, tiny_folder, tmp_path):
    (tmp_path / "text").write_text("a b c\n")
    for arguments in (["surprisal", "a b"], ["perplexity-by", tmp_path / "text"]):
        done = cli(*arguments, "-m", tiny_folder)
        assert done.returncode == 2
        assert "has no softmax" in done.stderr
        assert done.stderr.count("\n") == 1


def test_html_that_cannot_be_written(cli, lm_folder, tmp_path):
    done = cli("surprisal", "cat", "-m", lm_folder, "--html", tmp_path / "no" / "x.html")
    assert done.returncode == 2
    assert "does not exist" in done.stderr
