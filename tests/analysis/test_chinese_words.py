"""Chinese words that the segmenter joins or divides, in every command that takes a word."""

import json

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.change import change
from elmokit.analysis.index.build import build_index
from elmokit.analysis.index.neighbours import neighbours
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.scatter import Example, find_occurrences
from elmokit.analysis.similarity import word_similarity
from elmokit.errors import InputError
from helpers.indexing import TOKENIZED, write_text

FRUIT, FIRM = "我买了两斤苹果", "他在苹果公司工作"
NOTE = "of 苹果 is part of a longer token, such as 苹果公司; its vector is used"


@pytest.fixture
def segmented(tiny_folder):
    """A model that segments Chinese; 苹果公司 is one token for it."""
    elmo = Elmo.load(tiny_folder, device="cpu", tokenizer="chinese")
    assert "苹果公司" in elmo.tokenize(FIRM)
    return elmo


def test_similarity(segmented, tiny):
    (pair,) = word_similarity(segmented, FRUIT, FIRM, "苹果")
    assert (pair.first, pair.second, pair.longer) == (4, 2, ("", "苹果公司"))
    divided = ["他", "在", "苹果", "公司", "工作"]
    (pair,) = word_similarity(tiny, divided, divided, "苹果公司")
    assert (pair.first, pair.second) == (2, 2)
    assert pair.cosines == pytest.approx(1)


def test_a_divided_word_is_the_mean_of_its_tokens(tiny):
    found = find_occurrences(tiny, [Example("", "他 在 苹果 公司 工作", 1)], "苹果公司")
    (vectors,) = tiny.encode(["他 在 苹果 公司 工作"], layers="all")
    np.testing.assert_allclose(found.vectors[:, 0], vectors[:, 2:4].mean(1), rtol=1e-6)


def test_similarity_prints_a_note(cli, tiny_folder):
    arguments = ["--tokenizer", "chinese", "-m", tiny_folder, "--word", "苹果"]
    done = cli("similarity", FRUIT, FIRM, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"elmokit: 1 occurrence {NOTE}\n"
    done = cli("--quiet", "similarity", FRUIT, FIRM, *arguments)
    assert done.stderr == ""


def test_scatter_leaves_out_lines_without_the_word(cli, tiny_folder, tmp_path):
    file = tmp_path / "x.tsv"
    file.write_text(f"fruit\t{FRUIT}\n\nnone\t今天天气真好\nfirm\t{FIRM}\n", encoding="utf-8")
    arguments = ["--tokenizer", "chinese", "-m", tiny_folder, "--out", tmp_path / "x"]
    done = cli("scatter", file, "--word", "苹果", *arguments)
    assert done.returncode == 0, done.stderr
    assert "2 occurrences of '苹果' (fruit 1, firm 1)" in done.stdout
    assert f"1 occurrence {NOTE}\n" in done.stderr
    assert "1 line does not contain '苹果' and is left out" in done.stderr
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [(p["line"], p["position"]) for p in values["points"]] == [(1, 5), (4, 3)]
    assert len(values["notes"]) == 2


def test_neighbours(tiny, tmp_path):
    text = write_text(tmp_path / "text.txt", ["我 在 苹果公司 上班", "他 爱 吃 苹果"] * 20)
    build_index(tiny, [text], tmp_path / "idx", TOKENIZED)
    index = Index.open(tmp_path / "idx")
    found = neighbours(index, tiny, "他 在 苹果公司 工作", "苹果", 3)
    assert (found.position, len(found.notes)) == (2, 1)
    assert "苹果公司" not in dict(found.words)
    assert neighbours(index, tiny, "他 吃 苹果", "苹果", 3).notes == []
    with pytest.raises(InputError, match="'苹果 公司' is 2 tokens"):
        neighbours(index, tiny, "他 在 苹果 公司 工作", "苹果公司", 3)


def test_change_prefers_the_word_itself(segmented, tmp_path):
    eaten = write_text(tmp_path / "old.txt", [f"{FRUIT}第{n}次" for n in range(8)])
    firms = write_text(tmp_path / "new.txt", [f"{FIRM}第{n}年" for n in range(7)])
    (found,) = change(segmented, eaten, firms, ["苹果"])
    assert (found.n_old, found.n_new, set(found.longer)) == (8, 7, {"苹果公司"})
    assert found.prt is not None
    both = write_text(tmp_path / "both.txt", [*firms.read_text("utf-8").splitlines(), *[FRUIT] * 6])
    (found,) = change(segmented, eaten, both, ["苹果"])
    assert (found.n_old, found.n_new, found.longer) == (8, 6, ())


def test_change_finds_divided_words(tiny, tmp_path):
    text = write_text(tmp_path / "text.txt", [f"{n} 苹果 公司 开会" for n in range(6)])
    (found,) = change(tiny, text, text, ["苹果公司"], tokenized=True)
    assert (found.n_old, found.n_new, found.longer) == (6, 6, ())


def test_words_may_be_separated_by_chinese_commas(cli, tiny_folder, tmp_path):
    text = write_text(tmp_path / "text.txt", [f"{n} 苹果 和 银行" for n in range(6)])
    done = cli("change", text, text, "--words", "苹果，银行、公司", "-m", tiny_folder)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in ("苹果", "银行", "公司"))
