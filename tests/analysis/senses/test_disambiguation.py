"""Scores of word sense disambiguation, tags, and the commands."""

import json

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.senses.disambiguation import evaluate, tag
from elmokit.analysis.senses.sense_vectors import ALONE, AROUND, MIX, SenseVectors
from elmokit.analysis.senses.tagged_text import TaggedSentence, Target
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.errors import InputError
from helpers.senses import DATA, INDEX, MONEY, RIVER, TRAIN, length_1, of_bank, sentence


def test_nearest_average(tiny, senses, tmp_path):
    vectors = SenseVectors.train(tiny, TRAIN)
    assert sorted(vectors.keys) == [MONEY, RIVER]
    mean = length_1(of_bank(tiny, TRAIN[0]) + of_bank(tiny, TRAIN[1]))
    np.testing.assert_allclose(vectors.vectors[vectors.keys.index(MONEY)], mean, atol=1e-3)
    # each sentence is nearest to its own average; in the token layer all are alike, and the first
    # sense of WordNet is taken
    scores = evaluate(tiny, vectors, senses, TRAIN)
    assert scores.layers == pytest.approx([100 / 3, 100, 100])
    assert scores.mix == scores.alone == scores.around == 100
    assert scores.first == pytest.approx(100 / 3)
    assert (scores.n, scores.seen, scores.all_hints) == (3, 1, None)
    # a sentence not seen before
    new = sentence("a bank by the river", RIVER)
    cosines = (vectors.vectors * length_1(of_bank(tiny, new))).sum(-1)  # (senses, layers + 2)
    for layer in (1, 2, ALONE, AROUND):
        nearest = vectors.nearest(of_bank(tiny, new), [RIVER, MONEY], layer)
        assert nearest == (
            vectors.keys[cosines[:, layer].argmax()],
            pytest.approx(cosines[:, layer].max()),
        )
    mixed = cosines[:, :3].mean(1)
    nearest = vectors.nearest(of_bank(tiny, new), [RIVER, MONEY], MIX)
    assert nearest == (vectors.keys[mixed.argmax()], pytest.approx(mixed.max()))


def test_compounds_are_found_where_the_model_splits_them(tiny, tmp_path):
    (tmp_path / "index.sense").write_text("well-known%3:00:00:: 00000000 1 1\n" + INDEX)
    split = Elmo(tiny.checkpoint(), tokenizer="english-hyphens", device="cpu")
    vectors = SenseVectors.train(split, TRAIN)
    (found,) = tag(split, vectors, WordNet(tmp_path), [split.tokenize("a well-known bank")])
    assert [(word.start, word.end) for word in found] == [(1, 4), (4, 5)]
    assert found[0].key == "well-known%3:00:00::"


def test_combined(tiny, wordnet_folder):
    vectors = SenseVectors.train(tiny, TRAIN, keep=True)
    scores = evaluate(tiny, vectors, WordNet(wordnet_folder), TRAIN)
    found = [vectors.likeliest(of_bank(tiny, s), [RIVER, MONEY], {})[0] for s in TRAIN]
    right = [key in s.targets[0].keys for key, s in zip(found, TRAIN, strict=True)]
    assert scores.all_hints == pytest.approx(100 * sum(right) / 3)


def test_several_right_senses_and_unknown_words(tiny, senses):
    """As in the official scorer, any gold sense counts, and an unknown lemma is an error."""
    vectors = SenseVectors.train(tiny, TRAIN)
    either = sentence("the bank of the river", MONEY, RIVER)
    unknown = TaggedSentence(["the", "xyz"], [Target(1, 2, "xyz", "NOUN", keys=("xyz%1:00:00::",))])
    scores = evaluate(tiny, vectors, senses, [either, unknown])
    assert scores.layers == [50, 50, 50]
    assert (scores.first, scores.seen, scores.n) == (50, 0.5, 2)


def test_first_sense_where_nothing_was_seen(tiny, senses):
    vectors = SenseVectors.train(tiny, [sentence("a bank", "other%1:00:00::")], keep=True)
    scores = evaluate(tiny, vectors, senses, [sentence("the bank", RIVER)])
    found = [scores.first, *scores.layers, scores.mix, scores.alone, scores.around]
    assert [*found, scores.all_hints] == [100] * 8
    assert scores.seen == 0
    with pytest.raises(InputError, match="no tagged words"):
        SenseVectors.train(tiny, [])
    with pytest.raises(InputError, match="no gold senses"):
        evaluate(tiny, vectors, senses, [sentence("the bank")])


def test_commands(cli, tiny_folder, wordnet_folder, tmp_path):
    files = tmp_path / "semcor" / "brown1" / "tagfiles"
    files.mkdir(parents=True)
    (files / "br-a01").write_text(
        "<s snum=1><wf lemma=bank lexsn=1:14:00::>bank</wf><wf>of</wf><wf>money</wf></s>"
        "<s snum=2><wf>the</wf><wf lemma=bank lexsn=1:17:01::>bank</wf><wf>of</wf></s>"
    )
    senses = tmp_path / "senses.npz"
    train = ["wsd", "train", files.parent, "-m", tiny_folder, "--occurrences", "--out"]
    done = cli(*train, senses)
    assert done.returncode == 0, done.stderr
    assert "2 senses from 2 occurrences" in done.stdout
    done = cli(*train, tmp_path)
    assert done.returncode == 2
    assert "is a folder" in done.stderr
    (tmp_path / "a.data.xml").write_text(DATA)
    (tmp_path / "a.gold.key.txt").write_text("t0 river_bank%1:17:00::\nt1 bank%1:17:01::\n")
    test = ["wsd", "test", senses, tmp_path / "a.data.xml", "--wordnet", wordnet_folder]
    done = cli(*test, "-m", tiny_folder, "--out", tmp_path / "scores")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "scores.json").read_text())["rows"]
    assert row["dataset"] == "a"
    assert row["words"] == 2
    assert {"first sense", "token layer", "LSTM layer 2", "mix"} < set(row)
    assert {"top without residual", "context", "combined"} < set(row)
    assert (tmp_path / "scores.png").stat().st_size > 5000
    done = cli(
        "wsd", "tag", senses, "They sat on the river banks .", "--wordnet", wordnet_folder,
        "-m", tiny_folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "river_bank%1:17:00::" in done.stdout
    assert "most frequent" in done.stdout
    # without the occurrences
    done = cli("wsd", "train", files.parent, "-m", tiny_folder, "--out", tmp_path / "few.npz")
    assert done.returncode == 0, done.stderr
    done = cli(
        "wsd", "tag", tmp_path / "few.npz", "the bank of money", "--wordnet", wordnet_folder,
        "-m", tiny_folder, "--out", tmp_path / "tags",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "tags.json").read_text())["rows"]
    assert row["word"] == "bank"
    assert 0 < row["cosine"] <= 1.001
    done = cli("wsd", "tag", senses, "", "--wordnet", wordnet_folder, "-m", tiny_folder)
    assert done.returncode == 0, done.stderr
    done = cli(*test)  # with the model in the package, which did not make them
    assert done.returncode == 2
    assert "come from another model" in done.stderr
