"""Probes of all layers, the control task, the baseline, and the command."""

import json

import numpy as np
import pytest
import torch

from elmokit.analysis.probes.probing import control_tags, most_frequent, probe, sample
from elmokit.errors import InputError
from elmokit.io.conll import TaggedWords
from helpers.pictures import n_colours
from helpers.tagged import COLOURS, write_tagged


@pytest.fixture
def files(tmp_path):
    train = write_tagged(tmp_path / "train.conllu", 40)
    return train, write_tagged(tmp_path / "dev.conllu", 10, seed=1)


def test_control_tags():
    words = [str(i) for i in range(3000)] * 2
    tags = torch.tensor([0] * 6 + [1] * 3 + [3])
    drawn = control_tags(words, tags, np.random.default_rng(0))
    assert torch.equal(drawn[:3000], drawn[3000:])  # a word's tag is the same everywhere
    shares = drawn.bincount().double() / len(drawn)
    assert shares.tolist() == pytest.approx([0.6, 0.3, 0, 0.1], abs=0.03)
    assert torch.equal(drawn, control_tags(words, tags, np.random.default_rng(0)))


def test_most_frequent():
    words, tags = ["a", "a", "a", "b", "b"], torch.tensor([1, 0, 1, 2, 2])
    # a: 1; b: 2; new: 1, the smaller of the two most frequent
    assert most_frequent(words, tags, ["a", "b", "new", "a"], torch.tensor([1, 2, 1, 0])) == 75


def test_memory_can_do_the_control_task_of_known_words(tiny):
    """Three words have three token-layer vectors, which a probe can separate."""
    rng = np.random.default_rng(0)
    sentences = [
        TaggedWords([COLOURS[i] for i in row], [f"T{i}" for i in row])
        for row in rng.integers(0, 3, (40, 4)).tolist()
    ]
    result = probe(tiny, sentences[:30], sentences[30:])
    assert result.layers[0].accuracy == result.layers[0].control == 100
    assert result.word_list.accuracy == result.word_list.control == 100
    assert result.layers[0].selectivity == 0
    assert (result.n_train, result.n_dev, result.unseen) == (120, 40, 0)
    assert result.tags == ["T0", "T1", "T2"]
    assert len(result.layers) == len(result.shares) == 3
    assert probe(tiny, sentences[:30], sentences[30:]) == result


def test_words_without_a_tag_are_read_but_not_asked_for(tiny):
    known = [TaggedWords(["red", "of", "green"], ["A", None, "B"])] * 4
    asked = [TaggedWords(["red", "of"], ["A", None]), TaggedWords(["new"], ["C"])]
    result = probe(tiny, known, asked)
    assert (result.n_train, result.n_dev, result.unseen) == (8, 2, 0.5)
    assert result.word_list.accuracy == 50  # the tag C is not known
    with pytest.raises(InputError, match="the test text has no tagged words"):
        probe(tiny, known, [TaggedWords(["of"], [None])])


def test_sample():
    sentences = [TaggedWords([str(i)], ["T"]) for i in range(50)]
    some = sample(sentences, 10, seed=0)
    assert some == sample(sentences, 10, seed=0) != sample(sentences, 10, seed=1)
    assert some == sorted(some, key=lambda s: int(s.words[0]))
    assert sample(sentences, None, 0) == sample(sentences, 50, 0) == sentences


def test_command(cli, files, tiny_folder, tmp_path):
    done = cli("probe", "pos", *files, "-m", tiny_folder, "--out", tmp_path / "x")
    assert done.returncode == 0, done.stderr
    assert "160 training and 40 test tokens" in " ".join(done.stdout.split())
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [row["features"] for row in values["rows"]] == [
        *("token layer", "LSTM layer 1", "LSTM layer 2"),
        *("learned mix", "all layers", "most frequent tag per word"),
    ]
    assert values["rows"][0]["accuracy"] == 100
    assert (values["train_tokens"], values["dev_tokens"], values["column"]) == (160, 40, "upos")
    assert n_colours(tmp_path / "x.png") > 10


def test_command_options(cli, files, tiny_folder):
    few = cli("probe", "pos", *files, "-m", tiny_folder, "--max-sentences", 5, "--column", 4)
    assert "20 training and 20 test tokens" in " ".join(few.stdout.split())


def test_very_long_sentences(cli, tmp_path, tiny_folder):
    path = tmp_path / "long.conll"
    sentence = "".join(f"w{i % 7}\tT{i % 2}\n" for i in range(1500))
    path.write_text(sentence + "\n" + sentence + "\n" + "x" * 5000 + "\tT0\n", encoding="utf-8")
    done = cli("probe", "pos", path, path, "--column", 2, "-m", tiny_folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no sentences found"),
        (b"# only = this\n", "no sentences found"),
        (b"1\tword\tword\tNOUN\n", "expected at least 2"),
        (b"1\tw\xff\tw\tNOUN\n", "is not UTF-8 text"),
        (b"1\tone\n", "has 2 columns; expected at least 4"),
    ],
)
def test_mistakes_in_files(cli, tmp_path, files, tiny_folder, text, message):
    path = tmp_path / "wrong.conllu"
    path.write_bytes(text)
    done = cli("probe", "pos", path, files[1], "-m", tiny_folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_mistakes(cli, tmp_path, files, tiny_folder):
    for arguments, message in (
        (["probe", "pos", tmp_path / "no", files[1]], "there is no file"),
        (["probe", "pos", *files, "--column", "part"], "unknown column 'part'"),
        (["probe", "pos", *files, "--out", tmp_path / "no" / "x"], "does not exist"),
    ):
        done = cli(*arguments, "-m", tiny_folder)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
