"""Senses of words: the files, the averages, the scores."""

import json

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.senses.disambiguation import evaluate, tag
from elmokit.analysis.senses.sense_vectors import (
    ALONE,
    AROUND,
    MIX,
    Combination,
    Glosses,
    SenseVectors,
    target_vectors,
)
from elmokit.analysis.senses.tagged_text import TaggedSentence, Target, read_raganato, read_semcor
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.errors import FormatError, InputError
from helpers.pretraining import recipe

SEMCOR = """<contextfile concordance=brown>
<context filename=br-a01 paras=yes>
<p pnum=1>
<s snum=1>
<wf cmd=ignore pos=DT>The</wf>
<wf cmd=done rdf=group pos=NNP lemma=group wnsn=1 lexsn=1:03:00:: pn=group>Grand_Jury</wf>
<wf cmd=done pos=VB lemma=say wnsn=1;2 lexsn=2:32:00::;2:32:01::>said</wf>
<punc>``</punc>
<wf cmd=done pos=JJ lemma=such wnsn=0 lexsn=5:00:01:specified:00>such</wf>
</s>
<s snum=2>
<wf cmd=tag pos=NN>AT&amp;T</wf>
</s>
"""
INDEX = """bank%1:14:00:: 08420278 2 11
bank%1:17:01:: 09213565 1 25
bank%2:40:00:: 02343595 1 0
fast%3:00:01:: 00976508 1 5
fast%5:00:00:hurried:00 00001111 2 1
"""
DATA = """<?xml version="1.0"?>
<corpus><text id="d0"><sentence id="s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="t0" lemma="river_bank" pos="NOUN">river bank</instance>
<instance id="t1" lemma="bank" pos="NOUN">bank</instance>
</sentence></text></corpus>"""


def test_semcor(tmp_path):
    for folder in ("a/brown1/tagfiles", "copy/brown1/tagfiles"):  # twice, as in circulation
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "br-a01").write_text(SEMCOR)
    first, second = read_semcor(tmp_path)
    assert first.tokens == ["The", "Grand", "Jury", "said", '"', "such"]
    assert first.targets == [
        Target(1, 3, "group", "NOUN", keys=("group%1:03:00::",)),
        Target(3, 4, "say", "VERB", keys=("say%2:32:00::", "say%2:32:01::")),
        Target(5, 6, "such", "ADJ", keys=("such%5:00:01:specified:00",)),
    ]
    assert second.tokens == ["AT&T"]
    with pytest.raises(InputError, match="no folder tagfiles"):
        list(read_semcor(tmp_path / "nowhere"))


@pytest.fixture
def senses(tmp_path):
    (tmp_path / "index.sense").write_text(INDEX)
    return WordNet(tmp_path / "index.sense")


def test_wordnet(senses, tmp_path):
    assert senses.of("Bank", "NOUN") == ["bank%1:17:01::", "bank%1:14:00::"]
    assert senses.of("fast", "ADJ") == ["fast%3:00:01::", "fast%5:00:00:hurried:00"]
    assert senses.of("bank", "ADV") == []
    (tmp_path / "wrong").write_text("no such thing")
    with pytest.raises(InputError, match="is not WordNet's index.sense"):
        WordNet(tmp_path / "wrong")


def test_raganato(tmp_path):
    (tmp_path / "data.xml").write_text(DATA)
    (tmp_path / "gold.txt").write_text("t0 river_bank%1:17:01::\nt1 a%1:: b%1::\n")
    (sentence,) = read_raganato(tmp_path / "data.xml", tmp_path / "gold.txt")
    assert sentence.tokens == ["The", "river", "bank", "bank"]
    assert [(t.start, t.end, t.id, t.keys) for t in sentence.targets] == [
        (1, 3, "t0", ("river_bank%1:17:01::",)),
        (3, 4, "t1", ("a%1::", "b%1::")),
    ]
    (tmp_path / "data.xml").write_text(DATA[:-20])
    with pytest.raises(InputError, match="cannot read"):
        read_raganato(tmp_path / "data.xml")


def sentence(text, *keys):
    tokens = text.split()
    at = tokens.index("bank")
    return TaggedSentence(tokens, [Target(at, at + 1, "bank", "NOUN", keys=keys)])


MONEY, RIVER = "bank%1:14:00::", "bank%1:17:01::"


TRAIN = [
    sentence("deposit money in the bank now", MONEY),
    sentence("take money from the bank today", MONEY),
    sentence("the bank of the river", RIVER),
]


def of_bank(elmo, tagged):
    """The vectors of the word in every layer, and what the words on either side say without it."""
    at, half = tagged.targets[0].start, elmo.dim // 2
    (own,) = elmo.encode([tagged.tokens], "all")
    before, behind = elmo.encode([tagged.tokens[:at], tagged.tokens[at + 1 :]], "all")
    before, behind = before[2] - before[1], behind[2] - behind[1]  # without the residual connection
    around = np.concatenate([before[-1, :half], behind[0, half:]])
    return np.stack([*own[:, at], own[2, at] - own[1, at], around])


def length_1(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


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


def test_what_surrounds_a_phrase(tiny):
    """At either end of the sentence, the marks are all there is on that side."""
    tokens, half = ["river", "bank", "and", "bank"], tiny.dim // 2
    targets = [Target(0, 2, "river_bank", "NOUN"), Target(0, 4, "all", "NOUN")]
    (_, first), (_, whole) = target_vectors(tiny, [TaggedSentence(tokens, targets)])
    (marks,) = tiny.encode([[]], "all", marks=True)
    (behind,) = tiny.encode([tokens[2:]], "all")
    (own,) = tiny.encode([tokens], "all")
    np.testing.assert_allclose(first[:-2], own[:, :2].mean(1), atol=1e-6)
    np.testing.assert_allclose(first[ALONE], (own[2] - own[1])[:2].mean(0), atol=1e-6)
    marks, behind = marks[2] - marks[1], behind[2] - behind[1]
    np.testing.assert_allclose(first[-1, :half], marks[0, :half], atol=1e-6)
    np.testing.assert_allclose(first[-1, half:], behind[0, half:], atol=1e-6)
    np.testing.assert_allclose(whole[-1, :half], marks[0, :half], atol=1e-6)
    np.testing.assert_allclose(whole[-1, half:], marks[1, half:], atol=1e-6)


def test_compounds_are_split_as_the_model_splits_them(tiny):
    tokens = ["a", "well-known", "river", "bank", "-"]
    targets = [Target(1, 2, "well-known", "ADJ"), Target(2, 4, "river_bank", "NOUN")]
    split = Elmo(tiny.checkpoint(), tokenizer="english-hyphens", device="cpu")
    assert split.tokenize("well-known") == ["well", "-", "known"]
    pieces = ["a", "well", "-", "known", "river", "bank", "-"]
    for elmo, read, places in (
        (tiny, tokens, [(1, 2), (2, 4)]),
        (split, pieces, [(1, 4), (4, 6)]),
    ):
        (own,) = elmo.encode([read], "all")
        found = [vector for _, vector in target_vectors(elmo, [TaggedSentence(tokens, targets)])]
        for (start, end), vector in zip(places, found, strict=True):
            np.testing.assert_allclose(vector[:-2], own[:, start:end].mean(1), atol=1e-6)


def test_compounds_are_found_where_the_model_splits_them(tiny, tmp_path):
    (tmp_path / "index.sense").write_text("well-known%3:00:00:: 00000000 1 1\n" + INDEX)
    split = Elmo(tiny.checkpoint(), tokenizer="english-hyphens", device="cpu")
    vectors = SenseVectors.train(split, TRAIN)
    (found,) = tag(split, vectors, WordNet(tmp_path), [split.tokenize("a well-known bank")])
    assert [(word.start, word.end) for word in found] == [(1, 4), (4, 5)]
    assert found[0].key == "well-known%3:00:00::"


def test_of_another_model_or_version(tiny):
    vectors = SenseVectors.train(tiny, TRAIN)
    vectors.check(tiny)
    vectors.vectors = vectors.vectors[:, :-1]
    with pytest.raises(InputError, match="made by another model, or by an earlier version"):
        vectors.check(tiny)
    with pytest.raises(InputError, match="made by another model, or by an earlier version"):
        SenseVectors.train(tiny, TRAIN).check(Elmo.random("small", device="cpu"))


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_one_direction(kind):
    """All there is around a word is what was read before it."""
    context = {"kind": kind, "projection_dim": 8, "cell_dim": 16, "n_heads": 2}
    config = recipe(model={"context": context | {"bidirectional": False}}).model
    elmo = Elmo.random(config, device="cpu")
    (_, found), *_ = target_vectors(elmo, TRAIN)
    before = TRAIN[0].tokens[: TRAIN[0].targets[0].start]
    (layers,) = elmo.encode([before], "all")
    top = layers[2] - layers[1] if kind == "lstm" else layers[2]
    np.testing.assert_allclose(found[AROUND], top[-1], atol=1e-5)


def test_nothing_to_leave_out():
    """A top layer to which nothing is added is alone already."""
    for change in ({"skip_connections": False}, {"n_layers": 1}):
        context = {"projection_dim": 8, "cell_dim": 16} | change
        elmo = Elmo.random(recipe(model={"context": context}).model, device="cpu")
        (_, found), *_ = target_vectors(elmo, TRAIN)
        np.testing.assert_array_equal(found[ALONE], found[elmo.n_layers - 1])


def test_stored(tiny, tmp_path):
    path = tmp_path / "senses.npz"
    for keep in (False, True):
        vectors = SenseVectors.train(tiny, TRAIN, keep)
        vectors.save(path)
        again = SenseVectors.load(path)
        assert again.keys == vectors.keys
        assert again.counts.tolist() == [2, 1]
        np.testing.assert_allclose(again.vectors, vectors.vectors, atol=5e-4)
        assert (again.occurrences is None) == (not keep)
    np.testing.assert_array_equal(again.occurrences, vectors.occurrences)
    whole = path.read_bytes()
    for broken in (b"broken", whole[: len(whole) // 2], b""):
        path.write_bytes(broken)
        with pytest.raises(FormatError, match="is not a whole file of sense vectors"):
            SenseVectors.load(path)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    with pytest.raises(FormatError, match="is not a whole file of sense vectors"):
        SenseVectors.load(path.with_suffix(".npy"))
    vectors.counts[0] = 7
    vectors.save(path)
    with pytest.raises(FormatError, match="is not a whole file of sense vectors"):
        SenseVectors.load(path)
    with pytest.raises(FormatError, match="there is no file"):
        SenseVectors.load(tmp_path / "none")


def test_likeliest_sense():
    """Votes, averages and glosses, by hand."""
    east, north = np.float32([1, 0]), np.float32([0, 1])
    north_east = (east + north) / np.float32(np.sqrt(2))
    vectors = SenseVectors(
        ["a", "b"],
        np.stack([[east, north_east], [north, north]]),  # top layer, surroundings
        np.array([2, 1]),
        np.stack([east, north, north_east]).astype(np.float16),  # two of a, then one of b
    )

    def ask(around, how, glosses=None, candidates=("a", "b")):
        return vectors.likeliest(np.stack([top, around]), candidates, glosses or {}, how)

    top = 2 * east
    near = np.float32([0.6, 0.8])  # cosines to the three: 0.6, 0.8, 0.99
    one = Combination(k=1, sharpness=1.0, average=0.0, gloss=0.0)
    assert ask(near, one) == ("b", pytest.approx(1.0))
    votes = np.exp(np.array([0.6, 0.8, 0.99]))
    all_three = Combination(k=3, sharpness=1.0, average=0.0, gloss=0.0)
    assert ask(near, all_three) == ("a", pytest.approx(votes[:2].sum() / votes.sum(), rel=1e-3))
    by_average = Combination(k=1, sharpness=1.0, average=9.0, gloss=0.0)  # (1 + 0.99) / 2, 0.8 / 2
    assert ask(near, by_average)[0] == "a"
    no_votes = Combination(k=0, average=1.0, gloss=0.0)
    assert ask(near, no_votes) == ("a", 0.0)
    by_gloss = Combination(k=1, sharpness=1.0, average=0.0, gloss=9.0)
    assert ask(near, by_gloss, {"a": east, "b": near})[0] == "a"
    assert ask(near, by_gloss, {"a": east})[0] == "b"  # not both have one
    assert ask(near, one, candidates=["c"]) is None


def test_combined(tiny, wordnet_folder):
    vectors = SenseVectors.train(tiny, TRAIN, keep=True)
    scores = evaluate(tiny, vectors, WordNet(wordnet_folder), TRAIN)
    found = [vectors.likeliest(of_bank(tiny, s), [RIVER, MONEY], {})[0] for s in TRAIN]
    right = [key in s.targets[0].keys for key, s in zip(found, TRAIN, strict=True)]
    assert scores.all_hints == pytest.approx(100 * sum(right) / 3)


def test_glosses(tiny, wordnet_folder):
    """The mean over the words of the gloss, the lemma before them, the examples left out."""
    found = Glosses(tiny, WordNet(wordnet_folder)).of([RIVER, MONEY, RIVER])
    assert list(found) == [RIVER]  # the only one that has a gloss
    (layers,) = tiny.encode([["bank", ":", "sloping", "land"]], "all")
    vectors = layers[2] - layers[1]
    mean = length_1(length_1(vectors[2:]).mean(0))
    np.testing.assert_allclose(found[RIVER], mean, atol=1e-5)


def test_several_right_senses_and_unknown_words(tiny, senses):
    """As the official scorer: any of the right senses will do, and a wrong lemma is an error."""
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
    with pytest.raises(InputError, match="no word of the text has a sense"):
        SenseVectors.train(tiny, [])
    with pytest.raises(InputError, match="right sense"):
        evaluate(tiny, vectors, senses, [sentence("the bank")])


WORDNET = {
    "data.noun": "x" * 20 + '\n000 17 n 01 bank 0 000 | sloping land; "the river bank"\n',
    "noun.exc": "geese goose\n",
    "index.sense": "bank%1:17:01:: 00000021 1 25\nbank%1:14:00:: 00000000 2 11\n"
    "goose%1:05:00:: 00000000 1 1\nbank%2:40:00:: 00000000 1 3\nriver_bank%1:17:00:: 0 1 0\n"
    "deposit%2:40:00:: 00000000 1 9\nstudy%1:00:00:: 0 1 0\n",
}


@pytest.fixture
def wordnet_folder(tmp_path):
    folder = tmp_path / "wordnet"
    folder.mkdir()
    for name, text in WORDNET.items():
        (folder / name).write_text(text)
    return folder


def test_forms(wordnet_folder):
    wordnet = WordNet(wordnet_folder)
    assert wordnet.of_form("geese") == ["goose%1:05:00::"]
    assert wordnet.of_form("studies") == ["study%1:00:00::"]
    assert wordnet.of_form("Banks") == ["bank%1:17:01::", "bank%1:14:00::", "bank%2:40:00::"]
    assert wordnet.of_form("river banks") == ["river_bank%1:17:00::"]
    assert wordnet.of_form("s") == wordnet.of_form("nothing") == []
    assert wordnet.gloss("bank%1:17:01::") == 'sloping land; "the river bank"'
    assert WordNet(wordnet_folder / "index.sense").gloss("unknown") == ""


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
    assert "2 senses by 2 occurrences" in done.stdout
    done = cli(*train, tmp_path)
    assert done.returncode == 2
    assert "is a folder" in done.stderr
    (tmp_path / "a.data.xml").write_text(DATA)
    (tmp_path / "a.gold.key.txt").write_text("t0 river_bank%1:17:00::\nt1 bank%1:17:01::\n")
    test = ["wsd", "test", senses, tmp_path / "a.data.xml", "--wordnet", wordnet_folder]
    done = cli(*test, "-m", tiny_folder, "--out", tmp_path / "scores")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "scores.json").read_text())["rows"]
    assert row["F1"] == "a"
    assert row["words"] == 2
    assert {"first sense", "token layer", "LSTM layer 2", "mix"} < set(row)
    assert {"top alone", "around it", "all hints"} < set(row)
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
    assert "made by another model" in done.stderr
