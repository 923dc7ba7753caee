"""Geometry of vectors: every measure against a slow and plain one, and the command."""

import itertools
import json

import numpy as np
import pytest

from elmokit.analysis.geometry import (
    NAMES,
    anisotropy,
    frequent_words,
    geometry,
    intra_sentence_similarity,
    measure,
    self_similarity,
    static_share,
)
from elmokit.analysis.similarity import cosine, unit
from elmokit.analysis.texts import sample_sentences
from elmokit.errors import InputError
from helpers.pictures import n_colours

TEXT = "".join(
    f"The cat saw the {a}. A {b} ran to the {a}!\n"
    for a, b in itertools.product(["dog", "house", "tree"], ["bird", "man", "boy", "girl"])
)


@pytest.fixture
def some():
    """Vectors (40, 6) of 7 words in 9 sentences."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(0.3, 1, (40, 6))
    return vectors, rng.permutation(np.arange(40) % 7), np.sort(np.arange(40) % 9)


def test_anisotropy(some):
    vectors, words, sentences = some
    pairs = [
        cosine(vectors[i], vectors[j])
        for i, j in itertools.combinations(range(40), 2)
        if words[i] != words[j] and sentences[i] != sentences[j]
    ]
    assert anisotropy(unit(vectors), words, sentences) == pytest.approx(np.mean(pairs))


def test_anisotropy_by_hand():
    x = np.array([[1.0, 0], [2, 0], [0, 3]])
    assert anisotropy(unit(x), np.array([0, 1, 2]), np.array([0, 1, 2])) == pytest.approx(1 / 3)
    # the two that are alike are one word
    assert anisotropy(unit(x), np.array([0, 0, 1]), np.array([0, 1, 2])) == pytest.approx(0)
    # or stand in one sentence
    assert anisotropy(unit(x), np.array([0, 1, 2]), np.array([0, 0, 1])) == pytest.approx(0)
    # one sentence is all there is
    assert anisotropy(unit(x), np.array([0, 1, 2]), np.array([0, 0, 0])) == pytest.approx(1 / 3)
    assert np.isnan(anisotropy(unit(x), np.zeros(3, int), np.arange(3)))


def test_self_similarity(some):
    vectors, words, _ = some
    expected = [
        np.mean([cosine(a, b) for a, b in itertools.combinations(vectors[words == word], 2)])
        for word in range(7)
    ]
    assert self_similarity(unit(vectors), words) == pytest.approx(expected)
    x = unit(np.array([[1.0, 0], [0, 2], [5, 0], [1, 1]]))
    found = self_similarity(x, np.array([0, 0, 0, 1]))
    assert found[0] == pytest.approx(1 / 3)
    assert np.isnan(found[1])


def test_intra_sentence_similarity(some):
    vectors, _, sentences = some
    expected = [
        np.mean([cosine(v, vectors[sentences == s].mean(0)) for v in vectors[sentences == s]])
        for s in range(9)
    ]
    assert intra_sentence_similarity(vectors, sentences) == pytest.approx(expected)
    x = np.array([[1.0, 0], [0, 1], [7, 7]])  # a sentence of one token is left out
    found = intra_sentence_similarity(x, np.array([0, 0, 1]))
    assert found == pytest.approx([np.sqrt(0.5)])


@pytest.mark.parametrize("shape", [(5, 12), (30, 12), (12, 12)])
def test_static_share(shape):
    x = np.random.default_rng(1).normal(0.5, 1, shape)
    _, sigma, axes = np.linalg.svd(x)
    share, along = static_share(x)
    assert share == pytest.approx(sigma[0] ** 2 / (sigma**2).sum())
    assert along == pytest.approx((x @ axes[0]).var() / x.var(0).sum())


def test_static_share_by_hand():
    assert static_share(np.array([[3.0, 0], [0, 4]]))[0] == pytest.approx(16 / 25)
    share, along = static_share(np.array([[1.0, 2]] * 5))
    assert share == pytest.approx(1)
    assert np.isnan(along)
    # same mean, spread across it: nothing varies along the mean
    share, along = static_share(np.array([[10.0, 1], [10, -1]]))
    assert share == pytest.approx(200 / 202)
    assert along == pytest.approx(0)
    assert np.isnan(static_share(np.zeros((3, 2)))).all()


def test_words_in_enough_sentences():
    words = np.array([0] * 5 + [1] * 9 + [2] * 6)
    sentences = np.array([*range(5), *[0] * 9, *[0, 1, 2, 3, 4, 4]])
    assert frequent_words(words, sentences).tolist() == [0, 2]


def test_measures_belong_together(some):
    vectors, words, sentences = some
    found = measure(vectors, words, sentences, np.random.default_rng(0))
    counted = frequent_words(words, sentences)
    shares = [static_share(vectors[words == word])[0] for word in counted]
    assert found.static_share == pytest.approx(np.mean(shares))
    alike = self_similarity(unit(vectors), words)[counted]
    assert found.self_similarity == pytest.approx(alike.mean())
    cone = found.anisotropy
    assert found.self_similarity_adjusted == pytest.approx(found.self_similarity - cone)
    assert found.intra_sentence_adjusted == pytest.approx(found.intra_sentence - cone)
    assert found == measure(vectors, words, sentences, np.random.default_rng(0))


def test_random_vectors_have_nothing_in_common():
    """Adjusted measures of random vectors are near zero."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (6000, 64))
    found = measure(vectors, np.arange(6000) % 300, np.arange(6000) // 300, rng)
    for name in ("anisotropy", "self_similarity", "static_share_adjusted"):
        assert getattr(found, name) == pytest.approx(0, abs=0.01), name
    assert found.static_share > 0.05  # of 20 vectors, one in twenty lies along any


def test_token_layer_is_static(tiny, tmp_path):
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")
    sentences = sample_sentences(tiny, tmp_path / "text", 1000)
    found = geometry(tiny, sentences)
    assert found.layers[0].self_similarity == pytest.approx(1, abs=1e-4)
    assert found.layers[0].static_share == pytest.approx(1, abs=1e-4)
    assert np.isnan(found.layers[0].variance_along)
    assert found.layers[1].self_similarity < 0.999
    assert found.n_tokens == sum(map(len, sentences))
    assert found.layers[1:] == geometry(tiny, sentences).layers[1:]


def test_short_text_has_no_frequent_words(tiny):
    found = geometry(tiny, [["one", "two"], ["three"]])
    assert found.n_words == 0
    assert np.isnan(found.layers[1].self_similarity)
    assert not np.isnan(found.layers[1].anisotropy)
    with pytest.raises(InputError, match="fewer than two different words"):
        geometry(tiny, [["one", "one"]])


def test_command(cli, tiny_folder, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    done = cli("geometry", path, "-m", tiny_folder, "--out", tmp_path / "x", "--max-tokens", 80)
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [row["measure"] for row in values["rows"]] == list(NAMES)
    assert values["tokens"] == 80
    assert values["rows"][1]["ELMo 1"] == 0.744
    assert n_colours(tmp_path / "x.png") > 10
    again = cli("geometry", path, "-m", tiny_folder, "--max-tokens", 80)
    assert done.stdout.startswith(again.stdout)


def test_very_long_text(cli, tiny_folder, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(" ".join(f"w{i % 50}" for i in range(20_000)), encoding="utf-8")  # one sentence
    done = cli("geometry", path, "-m", tiny_folder, "--max-tokens", 3000)
    assert done.returncode == 0, done.stderr
    assert "3,000 vectors" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no tokens found in"),
        (b"\n \n", "no tokens found in"),
        (b"word", "fewer than two different words"),
        (b"caf\xe9 au lait", "is not UTF-8 text"),
    ],
)
def test_mistakes(cli, tiny_folder, tmp_path, text, message):
    path = tmp_path / "text.txt"
    path.write_bytes(text)
    done = cli("geometry", path, "-m", tiny_folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_file(cli, tiny_folder, tmp_path):
    done = cli("geometry", tmp_path / "no", "-m", tiny_folder)
    assert (done.returncode, "there is no file" in done.stderr) == (2, True)
