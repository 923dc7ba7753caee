"""Sense vectors: averages, contexts, glosses, files."""

import io
import os
import zipfile

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.senses.sense_vectors import (
    ALONE,
    AROUND,
    Combination,
    Glosses,
    SenseVectors,
    target_vectors,
)
from elmokit.analysis.senses.tagged_text import TaggedSentence, Target
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.errors import FormatError, InputError
from helpers.pretraining import recipe
from helpers.senses import MONEY, RIVER, TRAIN, length_1


def test_what_surrounds_a_phrase(tiny):
    """At the ends of a sentence, the context is a sentence mark."""
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


def test_of_another_model_or_version(tiny):
    vectors = SenseVectors.train(tiny, TRAIN)
    vectors.check(tiny)
    vectors.vectors = vectors.vectors[:, :-1]
    with pytest.raises(InputError, match="come from another model or an earlier version"):
        vectors.check(tiny)
    with pytest.raises(InputError, match="come from another model or an earlier version"):
        SenseVectors.train(tiny, TRAIN).check(Elmo.random("small", device="cpu"))


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_one_direction(kind):
    """The context of a forward-only model is what precedes the word."""
    context = {"kind": kind, "projection_dim": 8, "cell_dim": 16, "n_heads": 2}
    config = recipe(model={"context": context | {"bidirectional": False}}).model
    elmo = Elmo.random(config, device="cpu")
    (_, found), *_ = target_vectors(elmo, TRAIN)
    before = TRAIN[0].tokens[: TRAIN[0].targets[0].start]
    (layers,) = elmo.encode([before], "all")
    top = layers[2] - layers[1] if kind == "lstm" else layers[2]
    np.testing.assert_allclose(found[AROUND], top[-1], atol=1e-5)


def test_nothing_to_leave_out():
    """Without a residual connection, the top layer is used as it is."""
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
        with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
            SenseVectors.load(path)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
        SenseVectors.load(path.with_suffix(".npy"))
    vectors.counts[0] = 7
    vectors.save(path)
    with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
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


def test_glosses(tiny, wordnet_folder):
    """The mean over the gloss's words; the lemma precedes them, examples are left out."""
    found = Glosses(tiny, WordNet(wordnet_folder)).of([RIVER, MONEY, RIVER])
    assert list(found) == [RIVER]  # the only one that has a gloss
    (layers,) = tiny.encode([["bank", ":", "sloping", "land"]], "all")
    vectors = layers[2] - layers[1]
    mean = length_1(length_1(vectors[2:]).mean(0))
    np.testing.assert_allclose(found[RIVER], mean, atol=1e-5)


def test_flipped_bits_are_noticed(tiny, tmp_path):
    path = tmp_path / "senses.npz"
    SenseVectors.train(tiny, TRAIN, keep=True).save(path)
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as stored:
        places = [(e.header_offset + 200, e.file_size - 200) for e in stored.infolist()]
    for start, length in places:
        for at in range(start, start + max(1, length), max(1, length // 5)):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
            with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
                SenseVectors.load(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("vectors", np.full((2, 5, 16), np.nan, np.float16)),
        ("vectors", np.zeros((2, 5), np.float16)),
        ("vectors", np.array(["x", "y"])),
        ("vectors", np.zeros((2, 5, 16), np.complex64)),
        ("counts", np.array([-1, 4])),
        ("counts", np.array([1 << 62, 1 << 62])),
        ("counts", np.array([1.5, 1.5])),
        ("keys", np.array([1, 2])),
        ("keys", np.array([["a", "b"]])),
        ("occurrences", np.full((3, 16), np.inf, np.float16)),
        ("occurrences", np.zeros((3, 15), np.float16)),
        ("model", np.array(5)),
        ("another", np.array(5)),
    ],
)
def test_arrays_that_contradict_each_other(tiny, tmp_path, name, array):
    path = tmp_path / "senses.npz"
    SenseVectors.train(tiny, TRAIN, keep=True).save(path)
    with np.load(path) as stored:
        arrays = dict(stored) | {name: array}
    np.savez(path, **arrays)
    with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
        SenseVectors.load(path)


def test_arrays_larger_than_their_file(tiny, tmp_path):
    """Neither a header that lies nor a compressed array takes memory."""
    path = tmp_path / "senses.npz"
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.float16), (10**6, 5, 16), (0, 0, 0))
    np.savez_compressed(path, vectors=huge)
    with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
        SenseVectors.load(path)
    header = io.BytesIO()
    shape = {"descr": "<f2", "fortran_order": False, "shape": (10**9, 5, 16)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "w") as new:
        new.writestr("vectors.npy", header.getvalue())
    with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
        SenseVectors.load(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FormatError, match="is not a complete file of sense vectors"):
        SenseVectors.load(path)
