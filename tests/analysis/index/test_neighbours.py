"""``elmokit neighbours``: what is found, and how it is shown."""

from dataclasses import replace

import pytest

from elmokit import Elmo
from elmokit.analysis.index.build import build_index
from elmokit.analysis.index.neighbours import mark, neighbours
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.reports.neighbours_report import neighbours_report
from elmokit.analysis.similarity import unit
from elmokit.errors import InputError
from helpers.indexing import TOKENIZED, WORDS, sentences, write_text
from helpers.models import TINY, write_published
from helpers.pictures import n_colours


def test_neighbours(made, tiny):
    index = Index.open(made / "idx")
    sentence = next(s for s in sentences() if "play" in s.split())
    found = neighbours(index, tiny, sentence, "play", 5)
    assert found.tokens == sentence.split()
    assert len(found.occurrences) == 5
    assert all(one.tokens != found.tokens for one in found.occurrences)  # not the sentence itself
    cosines = [one.cosine for one in found.occurrences]
    assert cosines == sorted(cosines, reverse=True)
    assert len(found.words) == 5
    assert "play" not in dict(found.words)
    exact = neighbours(index, tiny, sentence, "play", 5, brute=True)
    assert [o.cosine for o in exact.occurrences] == pytest.approx(cosines)
    layer0 = {w: unit(tiny.encode([[w]], 0)[0][0]) for w in WORDS}
    expected = sorted((layer0[w] @ layer0["play"] for w in WORDS if w != "play"), reverse=True)
    assert [cosine for _, cosine in found.words] == pytest.approx(expected[:5], abs=2e-3)
    same = neighbours(index, tiny, sentence, "play", 1000, same_word=True)
    assert {one.word for one in same.occurrences} == {"play"}
    assert len(same.occurrences) == sum(
        s.split().count("play") for s in {*sentences()} - {sentence}
    )


def test_duplicates_are_shown_once(tiny, tmp_path):
    lines = ["the cat sat", "a dog ran", "the cat sat", "The Cat sat", "the cat sat"] * 30
    text = write_text(tmp_path / "text.txt", lines)
    build_index(tiny, [text], tmp_path / "idx", TOKENIZED)
    index = Index.open(tmp_path / "idx")
    assert index.config.sentences == 150
    assert index.config.rows == 9
    for options in ({}, {"brute": True}):
        found = neighbours(index, tiny, "a cat sat", "cat", 20, **options)
        assert len(found.occurrences) == 9
        assert len({(*one.tokens, one.position) for one in found.occurrences}) == 9
        without = neighbours(index, tiny, "the cat sat", "cat", 20, **options)
        assert len(without.occurrences) == 6
    found = neighbours(index, tiny, "a cat sat", "cat", 20, same_word=True)
    assert sorted(" ".join(one.tokens) for one in found.occurrences) == [
        "The Cat sat",
        "the cat sat",
    ]
    assert not {"cat", "Cat"} & set(dict(found.words))


def test_picture(made, tiny, tmp_path):
    index = Index.open(made / "idx")
    found = neighbours(index, tiny, "the $_$ play", "play", 100)
    table = neighbours_report(found)
    assert table.size[1] < 10
    table.write(tmp_path / "x")
    assert n_colours(tmp_path / "x.png") > 20
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "Nearest neighbours of the $_$ [play]</text>" in svg
    assert "same word" in svg
    assert neighbours_report(replace(found, occurrences=[], words=[])).draw is None
    for part in ({"occurrences": []}, {"words": []}):
        neighbours_report(replace(found, **part)).write(tmp_path / "x")


def test_mark():
    assert mark(["a", "b", "c"], 1) == "a [b] c"
    assert mark(list("abcdefg"), 3, 1) == "… c [d] e …"
    assert mark(["a"], 0, 0) == "[a]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a cat sat", "--word", "dog"], "'dog' is not among the tokens of 'a cat sat'"),
        (["", "--word", "dog"], "'dog' is not among the tokens"),
        (["a cat sat", "--word", ""], "--word is empty"),
        (["a cat sat", "--word", "a cat"], "'a cat' is 2 tokens"),
        (["a cat sat", "--word", "cat", "--which", "2"], "occurs 1 times"),
    ],
)
def test_bad_questions(made, cli, arguments, message):
    done = cli("neighbours", made / "idx", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("elmokit: ")
    assert done.stderr.count("\n") == 1


def test_another_model(made, tmp_path):
    index = Index.open(made / "idx")
    wide = TINY | {"lstm": TINY["lstm"] | {"projection_dim": 10}}
    other = Elmo.load(write_published(tmp_path / "wide", wide), device="cpu")
    with pytest.raises(InputError, match="has 16 dimensions of layer 2, but this model has 20"):
        neighbours(index, other, "a cat", "cat")
    other = Elmo.load(write_published(tmp_path / "other", TINY, seed=5), device="cpu")
    with pytest.raises(InputError, match="was built with another model"):
        neighbours(index, other, "a cat", "cat")


def test_no_other_occurrence(made, cli):
    """The left half of the table is empty, and a sentence says why."""
    done = cli("neighbours", made / "idx", "a zebra", "--word", "zebra", "--same-word")
    assert done.returncode == 0
    assert done.stderr == "elmokit: the indexed text has no other occurrence of 'zebra'\n"
