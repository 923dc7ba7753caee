"""``elmokit index``: what is written, and what is refused."""

import json
import random
import sys

import numpy as np
import pytest

from elmokit.analysis.index.build import IndexOptions, build_index
from elmokit.analysis.index.index_config import NAMES
from elmokit.analysis.index.neighbours import neighbours
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.reports.neighbours_report import neighbours_report
from elmokit.analysis.similarity import unit
from elmokit.errors import InputError, MissingExtraError, OutputError
from helpers.indexing import WORDS, same_files, sentences, write_text
from helpers.processes import run_process


def test_what_is_written(made, tiny):
    index = Index.open(made / "idx")
    lines = sentences()
    assert sorted(p.name for p in (made / "idx").iterdir()) == sorted(NAMES)
    assert index.config.sentences == len(lines)
    assert index.config.tokens == sum(len(line.split()) for line in lines)
    assert [index.sentence(i) for i in range(len(lines))] == [line.split() for line in lines]
    row = 0
    for number, line in enumerate(lines):
        expected = unit(tiny.encode([line.split()], "top")[0])
        there = index.vectors[row : row + len(expected)]
        assert np.abs(there.astype(np.float32) - expected).max() < 1e-3
        assert index.place(row) == (number, 0)
        row += len(expected)
        assert index.place(row - 1) == (number, len(expected) - 1)


def test_running_text(tiny_folder, tmp_path, cli):
    """Paragraphs in several files, split into sentences and tokens."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("The cat sat. The dog ran!\n\nIt was a great play.\n")
    (tmp_path / "texts/b.txt").write_text("“Play,” she said.\n")
    made = cli("index", tmp_path / "texts", "--out", tmp_path / "idx", "-m", tiny_folder,
               "--tokenizer", "english", "--layer", 1)  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "4 sentences" in made.stdout
    index = Index.open(tmp_path / "idx")
    assert index.sentence(2) == ["It", "was", "a", "great", "play", "."]
    assert (index.config.layer, index.config.tokenizer) == (1, "english")
    done = cli("neighbours", tmp_path / "idx", "He saw a play.", "--word", "play", "-k", 3,
               "--out", tmp_path / "found")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Nearest neighbours of He saw a [play] ." in done.stdout
    values = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert len(values["rows"]) == len(values["occurrences"]) == len(values["words"]) == 3
    assert values["position"] == 3
    assert len((tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()) == 4
    again = cli("neighbours", tmp_path / "idx", "play play", "--word", "play", "--which", 2,
                "--brute", "--same-word")  # fmt: skip
    assert "play [play]" in again.stdout


def test_standard_input(made, tiny_folder, tmp_path):
    command = ("index", "-", "--out", tmp_path / "idx", "-m", tiny_folder, "--tokenized")
    done = run_process(*command, stdin=(made / "text.txt").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    same_files(made / "idx", tmp_path / "idx")


def test_one_word(tiny, tmp_path):
    build_index(tiny, [write_text(tmp_path / "text.txt", ["play"])], tmp_path / "idx")
    index = Index.open(tmp_path / "idx")
    found = neighbours(index, tiny, "a play", "play")
    assert [one.tokens for one in found.occurrences] == [["play"]]
    assert found.words == []
    shown = neighbours_report(found).shown()
    assert len(shown) == 1
    assert shown[0][0] == "[play]"
    own = neighbours(index, tiny, "play", "play")  # nothing is left: an empty table, no error
    assert neighbours_report(own).shown() == []


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_empty_text(tiny, tmp_path, text):
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(InputError, match="there is no word in"):
        build_index(tiny, [tmp_path / "text.txt"], tmp_path / "idx")
    assert [p.name for p in tmp_path.iterdir()] == ["text.txt"]


def test_a_long_line(tiny, tmp_path):
    words = random.Random(0).choices(WORDS, k=100_000)
    text = write_text(tmp_path / "text.txt", ["the cat", " ".join(words)])
    # the token layer, as reading so much one word after another takes an LSTM half a minute
    options = IndexOptions(layer=0, tokenized=True, most_per_word=50)
    build_index(tiny, [text], tmp_path / "idx", options)
    index = Index.open(tmp_path / "idx")
    assert index.config.tokens == 100_002
    assert index.config.rows <= 50 * len(WORDS)
    (one,) = neighbours(index, tiny, "a great play", "play", 1).occurrences
    assert len(one.marked().split()) <= 27


def test_bad_texts(tiny_folder, tmp_path, cli):
    (tmp_path / "latin1.txt").write_bytes("naïve café\n".encode("latin1"))
    for name, message in (("no.txt", "there is no file"), ("latin1.txt", "is not UTF-8 text")):
        done = cli("index", tmp_path / name, "--out", tmp_path / "idx", "-m", tiny_folder)
        assert done.returncode == 2
        assert message in done.stderr
    text = write_text(tmp_path / "text.txt", ["the cat"])
    for arguments, message in (
        (["--layer", 3], "from 0 (the token layer) to 2, not 3"),
        (["--tokenized", "--tokenizer", "english"], "leave out --tokenizer"),
        (["--resume", "--restart"], "not both"),
    ):
        done = cli("index", text, "--out", tmp_path / "idx", "-m", tiny_folder, *arguments)
        assert done.returncode == 2
        assert message in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latin1.txt", "text.txt"]


def test_replacing(tiny, tmp_path):
    text = write_text(tmp_path / "text.txt", ["the cat"])
    build_index(tiny, [text], tmp_path / "idx")
    with pytest.raises(OutputError, match="exists already"):
        build_index(tiny, [text], tmp_path / "idx")
    write_text(text, ["a dog ran"])
    build_index(tiny, [text], tmp_path / "idx", IndexOptions(overwrite=True))
    assert Index.open(tmp_path / "idx").sentence(0) == ["a", "dog", "ran"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["idx", "text.txt"]
    (tmp_path / "idx/thesis.tex").touch()
    with pytest.raises(OutputError, match="thesis.tex"):
        build_index(tiny, [text], tmp_path / "idx", IndexOptions(overwrite=True))


def test_without_usearch(made, tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match="elmokit\\[index\\]"):
        build_index(tiny, [made / "text.txt"], tmp_path / "idx")
    assert list(tmp_path.iterdir()) == []
    index = Index.open(made / "idx")
    with pytest.raises(MissingExtraError):
        neighbours(index, tiny, "a cat", "cat")
    assert neighbours(index, tiny, "a cat", "cat", brute=True).occurrences
