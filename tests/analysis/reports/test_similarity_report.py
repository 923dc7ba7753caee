"""Similarities as bars and heat maps."""

import csv
import json

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.reports.similarity_report import heat_map_report
from elmokit.analysis.similarity import TokenPairs, cosine, sentence_similarity, token_pairs
from elmokit.errors import InputError
from helpers.pictures import n_colours


def test_token_pairs(tiny):
    pairs = token_pairs(tiny, "the bank", ["a", "bank", "closed"])
    a, b = tiny.encode(["the bank", ["a", "bank", "closed"]], layers="all")
    assert pairs.cosines.shape == (3, 2, 3)
    for k, i, j in np.ndindex(3, 2, 3):
        assert pairs.cosines[k, i, j] == pytest.approx(cosine(a[k, i], b[k, j]), abs=1e-6)
    assert pairs.cosines[0, 1, 1] == pytest.approx(1)
    whole = sentence_similarity(tiny, "the bank", ["a", "bank", "closed"])
    assert pairs.sentences == pytest.approx(whole, abs=1e-6)


def test_heat_map_rows():
    cosines = np.arange(12).reshape(2, 2, 3) / 20
    pairs = TokenPairs(["a", "b"], ["c", "d", "e"], cosines, np.array([0.25, 0.75]))
    report = heat_map_report(pairs, ["zero", "one"])
    assert report.about["sentence_cosines"] == {"zero": 0.25, "one": 0.75}
    assert report.rows[4] == ["b", 2, "d", 2, 0.2, 0.5]
    assert len(report.rows) == 6


def test_files_of_a_heat_map(cli, tiny_folder, tmp_path):
    done = cli("similarity", "one $ and $ two", "河 岸 bank", "--out", tmp_path / "x",
               "-m", tiny_folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sentences" in done.stdout
    assert "wrote" in done.stdout
    assert n_colours(tmp_path / "x.png") > 20
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    for cosine_ in values["sentence_cosines"].values():
        assert f"{cosine_:.3f}" in done.stdout  # what is printed is written too
    assert values["model"] == str(tiny_folder)
    assert values["weights"] == Elmo.load(tiny_folder).checkpoint().checksum()
    assert values["sentences"] == ["one $ and $ two", "河 岸 bank"]
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 15
    assert (rows[1]["first"], rows[1]["second"]) == ("one", "岸")
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    for word in ("bank", "$", "岸"):
        assert f">{word}</text>" in svg


def test_files_of_a_word(cli, tiny_folder, tmp_path):
    done = cli("similarity", "the bank", "a bank on a bank", "--word", "bank",
               "--out", tmp_path / "x", "-m", tiny_folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [row["pair"] for row in values["rows"]] == ["bank 2 ~ bank 2", "bank 2 ~ bank 5"]
    assert values["rows"][0]["token layer"] == pytest.approx(1)
    assert n_colours(tmp_path / "x.png") > 20


@pytest.mark.parametrize("words", [[], ["--word", "w7"]])
def test_long_and_short_sentences(cli, tiny_folder, tmp_path, words):
    long = " ".join(f"w{i % 100}" for i in range(200))
    out = ["--out", tmp_path / "x", "-m", tiny_folder]
    assert cli("similarity", long, long, *words, *out).returncode == 0
    assert n_colours(tmp_path / "x.png") > 20
    assert cli("similarity", "w7", "w7", *words, *out).returncode == 0
    for sentences, which in ((["w7", ""], "second"), (["", "w7"], "first")):
        for where in (out, out[2:]):
            done = cli("similarity", *sentences, *words, *where)
            assert done.returncode == 2
            assert f"the {which} sentence has no tokens" in done.stderr
            assert done.stderr.count("\n") == 1


def test_more_pairs_than_bars(cli, tiny_folder, tmp_path):
    done = cli("similarity", "a " * 6, "a " * 6, "--word", "a", "--out", tmp_path / "x",
               "-m", tiny_folder)  # fmt: skip
    assert done.returncode == 0
    assert "the first 30 of 36 pairs" in (tmp_path / "x.svg").read_text(encoding="utf-8")


def test_too_many_pairs(tiny):
    with pytest.raises(InputError, match="too many pairs"):
        token_pairs(tiny, ["a"] * 501, ["b"] * 500)
