"""Perplexity by position and frequency rank."""

import json

import numpy as np
import pytest

from elmokit.analysis.perplexity_bands import banded_perplexity, perplexity_of_text
from elmokit.analysis.reports.perplexity_bands_report import bands_report
from elmokit.text.vocabulary import Vocabulary
from helpers.models import SCORED_SENTENCES as SENTENCES
from helpers.pictures import n_colours


def test_sums(lm, monkeypatch):
    monkeypatch.setattr(
        "elmokit.analysis.perplexity_bands.RANKS", (2, 4, 6)
    )  # the, cat; sat, on; a, mat
    found = banded_perplexity(lm, SENTENCES)
    scores = lm.score(SENTENCES)
    assert found.positions.names == ["1", "2", "3", "4–5", "6–10", "11–20", "21–40", "41+"]
    assert found.positions.counts.tolist() == [4, 3, 3, 5, 5, 10, 20, 20]
    assert found.ranks.names == ["1–2", "3–4", "5–6", "7+", "unknown"]
    assert found.ranks.counts.tolist() == [3, 2, 61, 2, 2]

    first = [-s.forward[0] for s in scores]
    assert found.positions.perplexities()[0, 0] == pytest.approx(np.exp(np.mean(first)), rel=1e-5)
    late = -scores[2].backward[40:]
    assert found.positions.perplexities()[1, -1] == pytest.approx(np.exp(late.mean()), rel=1e-5)
    unknown = [
        -(s.forward[i] + s.backward[i]) / 2
        for s in scores
        for i, token in enumerate(s.tokens)
        if token in ("zebra", "<UNK>")
    ]
    assert found.ranks.perplexities()[2, -1] == pytest.approx(np.exp(np.mean(unknown)), rel=1e-5)
    dots = [s.forward[-1] for s in scores if s.tokens[-1] == "."]
    assert found.ranks.perplexities()[0, 3] == pytest.approx(np.exp(-np.mean(dots)), rel=1e-5)

    rows = bands_report(found).rows
    whole = lm.perplexity(SENTENCES)
    assert rows[-1][:3] == ["total", "all", 74]
    assert rows[-1][3:] == pytest.approx([whole.forward, whole.backward, whole.mean], rel=1e-5)
    assert rows[-2][2] == 4
    assert rows[-2][4] == pytest.approx(np.exp(-np.mean([s.start for s in scores])), rel=1e-5)


def test_bands_of_the_usual_ranks(lm):
    assert banded_perplexity(lm, SENTENCES).ranks.names == [
        "1–100", "101–1k", "1k–10k", "10k–100k", "unknown"
    ]  # fmt: skip


def test_a_large_vocabulary_has_one_band_more():
    from elmokit.analysis.perplexity_bands import _rank_bands

    words = ["<S>", *(f"w{i}" for i in range(1, 100_002)), "</S>", "<UNK>"]
    bands = _rank_bands(Vocabulary(words))
    assert bands.names[-2:] == ["100k+", "unknown"]
    ranks = [1, 100, 101, 1000, 1001, 10_000, 10_001, 100_000, 100_001]
    assert bands([f"w{i}" for i in ranks]).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert bands(["</S>", "<S>", "<UNK>", "never seen"]).tolist() == [5] * 4


def test_command(cli, lm_folder, tmp_path):
    (tmp_path / "text").write_text("the cat sat . The mat\n\n银行 在 河 边 。 a cat .\n")
    arguments = ["perplexity-by", tmp_path / "text", "-m", lm_folder]
    done = cli(*arguments, "--out", tmp_path / "x")
    assert done.returncode == 0, done.stderr
    assert n_colours(tmp_path / "x.png") > 20
    rows = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["rows"]
    assert rows[0] == rows[0] | {"group": "position", "band": "1", "tokens": 4}
    assert rows[7]["forward"] is None  # nothing is that far
    done = cli(*arguments, "--tokenized", "--max-tokens", 3)
    assert done.returncode == 0
    total = done.stdout.splitlines()[-2].split()
    assert total[:3] == ["total", "all", "4"]  # tokens, the sentence cut, and a mark


@pytest.mark.parametrize("text", ["cat", "the cat sat " * 100])
def test_short_and_long(cli, lm_folder, tmp_path, text):
    (tmp_path / "text").write_text(text)
    done = cli("perplexity-by", tmp_path / "text", "-m", lm_folder, "--out", tmp_path / "x")
    assert done.returncode == 0, done.stderr
    assert n_colours(tmp_path / "x.png") > 20


def test_a_long_line_is_cut(lm, tmp_path, monkeypatch):
    (tmp_path / "text").write_text("the cat sat .\n" + "the cat sat " * 10_000)
    seen, score = [], lm._lm.score
    monkeypatch.setattr(
        lm._lm, "score", lambda some, *rest: seen.extend(some) or score(some, *rest)
    )
    found = perplexity_of_text(lm, [tmp_path / "text"], 30, tokenized=True)
    assert found.whole.counts.tolist() == [30, 2]
    assert [len(sentence) for sentence in seen] == [4, 26]


def test_mistakes(cli, lm_folder, tmp_path):
    (tmp_path / "text").write_text("\n \n")
    for arguments, message in (
        ([tmp_path / "text"], "no tokens found"),
        ([tmp_path / "no"], "there is no file"),
        ([tmp_path / "text", "--max-tokens", 0], "--max-tokens must be at least 1"),
    ):
        done = cli("perplexity-by", *arguments, "-m", lm_folder)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
