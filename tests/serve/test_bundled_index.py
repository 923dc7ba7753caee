"""The small index in the package: it fits the bundled model, or says how to make it fit."""

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.index.neighbours import neighbours_at
from elmokit.errors import FormatError
from elmokit.serve.bundled_index import PLACE, BundledIndex, stored_sentences, write_bundled


@pytest.fixture(scope="module")
def en():
    return Elmo.load("en", device="cpu")


@pytest.fixture(scope="module")
def index(en):
    return BundledIndex.open(en)


def test_it_is_small(index):
    assert PLACE.stat().st_size <= 4_000_000
    assert index.config.rows > 4000


def test_rows_are_the_vectors_of_their_words(index, en):
    for row in range(0, index.config.rows, 500):
        sentence, position = index.place(row)
        (vectors,) = en.encode([index.sentence(sentence)], index.config.layer)
        right = vectors[position] / np.linalg.norm(vectors[position])
        assert right @ index.vectors[row].astype(np.float32) > 0.999  # rounded to int8


def test_neighbours_share_the_meaning(index, en):
    def words(text, word):
        tokens = en.tokenize(text)
        found = neighbours_at(index, en, tokens, tokens.index(word), 5)
        assert len(found.occurrences) == len(found.words) == 5
        assert word not in [static for static, _ in found.words]
        cosines = [one.cosine for one in found.occurrences]
        assert cosines == sorted(cosines, reverse=True)
        return {" ".join(one.tokens) for one in found.occurrences}

    river = words("They sat on the grassy bank of the river .", "bank")
    money = words("He put his money in the bank and lived on the interest .", "bank")
    assert river != money


def test_the_sentence_itself_is_no_neighbour(index, en):
    tokens = index.sentence(0)
    position = index.place(0)[1]
    found = neighbours_at(index, en, tokens, position, 10)
    assert tokens not in [one.tokens for one in found.occurrences]


def test_one_word_only(index):
    vector = index.vectors[0].astype(np.float32)
    sentence, position = index.place(0)
    word = index.sentence(sentence)[position]
    rows = [row for row, _ in index.search(vector, 5, word=word)]
    assert {index.sentence(s)[p] for s, p in map(index.place, rows)} == {word}


def test_another_model_is_refused(tiny, tmp_path):
    with pytest.raises(FormatError, match="another version of the model; rebuild it with"):
        BundledIndex.open(tiny)
    with pytest.raises(FormatError, match="is not in the package"):
        BundledIndex.open(tiny, tmp_path / "none.npz")
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(PLACE.read_bytes()[:5000])
    with pytest.raises(FormatError, match="is damaged"):
        BundledIndex.open(tiny, damaged)


def test_it_can_be_built_again_from_its_own_sentences(tiny, tmp_path):
    sentences = [text.split(" ") for text in stored_sentences()[:20]]
    chosen = [(tokens, [0, len(tokens) - 1]) for tokens in sentences]
    config = write_bundled(tiny, chosen, tmp_path / "new.npz")
    assert (config.rows, config.sentences) == (40, 20)
    found = BundledIndex.open(tiny, tmp_path / "new.npz")
    (vectors,) = tiny.encode([sentences[3]], tiny.n_layers - 1)
    right = vectors[-1] / np.linalg.norm(vectors[-1])
    assert found.search(right, 1)[0][0] == 7
