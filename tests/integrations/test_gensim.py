"""gensim: word vectors of the token layer, searched by gensim and written as word2vec files."""

import logging

import numpy as np
import pytest

from elmokit import Elmo, InputError, OutputError
from elmokit.integrations.gensim import save_word2vec, to_keyed_vectors
from helpers.models import VOCABULARY

WORDS = ["the", "cat", "naïve", "日本語", "🙂", "x" * 60, "<UNK>", "\u00a0", "a_b", "0"]


@pytest.fixture(autouse=True)
def gensim():
    return pytest.importorskip(
        "gensim", reason="gensim is not installed: pip install 'elmokit[gensim]'"
    )


def loaded(path, **keywords):
    from gensim.models import KeyedVectors

    return KeyedVectors.load_word2vec_format(str(path), **keywords)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_vectors_are_both_halves_of_the_token_layer(tiny):
    vectors = to_keyed_vectors(tiny, WORDS)
    (layer,) = tiny.encode([WORDS], layers=0)
    assert vectors.index_to_key == WORDS
    assert vectors.vectors.dtype == np.float32
    assert vectors.vector_size == tiny.dim // 2
    close(vectors.vectors, layer[:, :8])
    close(vectors.vectors, layer[:, 8:])
    close(vectors["cat"], tiny.encode([["A", "cat"]], 0)[0][1, :8])


def test_more_words_than_one_round(tiny, monkeypatch):
    monkeypatch.setattr("elmokit.integrations.gensim._WORDS_AT_ONCE", 3)
    close(to_keyed_vectors(tiny, WORDS).vectors, tiny.encode([WORDS], 0)[0][:, :8])


def test_the_vocabulary_is_the_default(lm, tiny):
    vectors = to_keyed_vectors(lm)
    assert vectors.index_to_key == VOCABULARY[3:]
    close(vectors.vectors, lm.encode([VOCABULARY[3:]], 0)[0][:, :8])
    with pytest.raises(InputError, match="this model has no vocabulary; pass words="):
        to_keyed_vectors(tiny)


def test_repeated_words_count_once(tiny):
    vectors = to_keyed_vectors(tiny, iter(["b", "a", "b", "c", "a"]))
    assert vectors.index_to_key == ["b", "a", "c"]
    assert [vectors.get_vecattr(word, "count") for word in "bac"] == [3, 2, 1]


def test_mistakes(tiny):
    for words in ([], [""], ["a", ""]):
        with pytest.raises(InputError, match="one or more words, none of them empty"):
            to_keyed_vectors(tiny, words)
    with pytest.raises(InputError, match="words must be a list of strings, not 'cat'"):
        to_keyed_vectors(tiny, "cat")
    with pytest.raises(InputError, match="elmo must be a model"):
        to_keyed_vectors("en", ["cat"])


def test_searches():
    words = ["walk", "walked", "walking", "bank", "金", "Microsoft"]
    vectors = to_keyed_vectors(Elmo.load(device="cpu"), words)
    unit = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    found = vectors.most_similar("walk", topn=5)
    assert {word for word, _ in found[:2]} == {"walked", "walking"}
    for word, similarity in found:
        assert similarity == pytest.approx(unit[0] @ unit[words.index(word)], abs=1e-5)


def test_chinese():
    vectors = to_keyed_vectors(Elmo.load("zh", device="cpu"), ["北京", "南京", "电脑"])
    assert vectors.most_similar("北京")[0][0] == "南京"


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.bin", "vectors.txt.gz"])
def test_files(name, tiny, tmp_path, caplog):
    vectors, binary = to_keyed_vectors(tiny, WORDS), name.endswith(".bin")
    path = tmp_path / name
    path.write_text("old")
    with caplog.at_level(logging.WARNING):
        save_word2vec(vectors, path, binary=binary)
    assert not caplog.records
    assert [p.name for p in tmp_path.iterdir()] == [name]  # no temporary file is left
    again = loaded(path, binary=binary)
    assert again.index_to_key == WORDS
    np.testing.assert_array_equal(again.vectors, vectors.vectors)  # text has all digits


def test_text_has_a_header(tiny, tmp_path):
    save_word2vec(to_keyed_vectors(tiny, ["a", "b"]), tmp_path / "v.txt")
    lines = (tmp_path / "v.txt").read_text().splitlines()
    assert lines[0] == "2 8"
    assert [line.split(" ")[0] for line in lines[1:]] == ["a", "b"]
    assert {len(line.split(" ")) for line in lines[1:]} == {9}


@pytest.mark.parametrize("word", ["New York", "a\tb", "line\n"])
def test_words_with_white_space(word, tiny, tmp_path):
    vectors = to_keyed_vectors(tiny, ["cat", word])  # fine in memory
    close(vectors[word], tiny.encode([[word]], 0)[0][0, :8])
    with pytest.raises(InputError, match="contains white space"):
        save_word2vec(vectors, tmp_path / "v.txt")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tiny, tmp_path, monkeypatch):
    vectors, path = to_keyed_vectors(tiny, ["cat"]), tmp_path / "v.txt"
    path.write_text("old")

    def fail(file, **keywords):
        with open(file, "w") as half:
            half.write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vectors, "save_word2vec_format", fail)
    with pytest.raises(OutputError, match="no space left"):
        save_word2vec(vectors, path)
    assert [p.name for p in tmp_path.iterdir()] == ["v.txt"]
    assert path.read_text() == "old"
    with pytest.raises(OutputError, match="does not exist"):
        save_word2vec(vectors, tmp_path / "none" / "v.txt")
