"""Surprisal of a sentence's words."""

import csv
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.reports.surprisal_page import COLOURS, NAMES, STEPS, page, step
from elmokit.analysis.surprisal import Surprisal, surprisal, surprisal_report
from helpers.pictures import n_colours


@pytest.fixture
def lm(lm_folder):
    return Elmo.load(lm_folder, device="cpu")


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


def test_steps():
    assert [step(bits) for bits in (0, 1.9, 2, 5, 13.9, 14, 99, math.inf)] == [
        0, 0, 1, 2, 4, 5, 5, 5
    ]  # fmt: skip
    assert len(NAMES) == len(COLOURS) == len(STEPS) + 1
    assert [int(n) for n in re.findall(r"\d+", " ".join(NAMES))] == [
        2, 2, 4, 4, 7, 7, 10, 10, 14, 14
    ]  # fmt: skip


def test_letters_can_be_read():
    def light(colour):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [
            0.2126, 0.7152, 0.0722
        ]  # fmt: skip

    for ground, letters in COLOURS:  # WCAG's contrast
        a, b = sorted([light(ground), light(letters)])
        assert (b + 0.05) / (a + 0.05) > 4.5
    assert sorted(COLOURS, key=lambda c: -light(c[0])) == list(COLOURS)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.titles, self.words = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.titles += [value for name, value in attributes if name == "title"]

    def handle_data(self, data):
        self.words.append(data)


def test_page():
    bits = {"forward": np.array([1.0, 3]), "backward": np.array([3.0, 20])}
    bits["mean"] = np.array([2.0, 11.5])
    evil = '"><script>alert(1)</script>&amp;'
    found = Surprisal([evil, "河"], [False, True], bits)
    html = page(found)
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.tags
    assert tags.titles[0] == f"{evil}*: forward 1.00, backward 3.00, mean 2.00 bits"
    assert evil + "*" in tags.words
    assert "河" in tags.words
    assert "color-scheme" in html
    assert not re.search(r"https?:|src=|href=", html)  # it needs nothing else
    assert html.count('class="c5"') == 2  # the legend, and the backward 河
    assert "not in the vocabulary" in html
    assert "not in the vocabulary" not in page(Surprisal(["a", "b"], [True, True], bits))


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
    assert values["averages"]["mean"] == pytest.approx(mean)


def test_colours(cli, lm_folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = cli("surprisal", "the [red]cat[/red]", "-m", lm_folder).stdout
    assert "\x1b[" in out
    assert "[red]cat[/red]" in re.sub(r"\x1b\[[\d;]*m", "", out)
    assert "14 and more" in out


def test_short_and_long(cli, lm_folder, tmp_path):
    out = ["-m", lm_folder, "--out", tmp_path / "x"]
    assert cli("surprisal", "cat", *out).returncode == 0
    assert cli("surprisal", "the cat sat " * 70, *out).returncode == 0
    assert "the first 200 of 210 tokens" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    for empty in ("", "  "):
        done = cli("surprisal", empty, *out)
        assert done.returncode == 2
        assert "no token" in done.stderr


def test_infinite_surprisal(tmp_path):
    bits = {"forward": np.array([np.inf, 1.0])}
    report = surprisal_report(Surprisal(["a", "b"], [True, True], bits))
    report.write(tmp_path / "x")
    assert json.loads((tmp_path / "x.json").read_text())["rows"][0]["forward"] is None


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
