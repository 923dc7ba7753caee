"""Every result of an analysis shows itself in a notebook, and has a short repr."""

import pytest

from elmokit.analysis.change import Changes, change
from elmokit.analysis.geometry import geometry
from elmokit.analysis.index.build import IndexOptions, build_index
from elmokit.analysis.index.neighbours import neighbours
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.perplexity_bands import banded_perplexity
from elmokit.analysis.probes.probing import probe
from elmokit.analysis.scatter import Example, find_occurrences
from elmokit.analysis.senses.disambiguation import TaggedTokens, TaggedWord, evaluate
from elmokit.analysis.senses.sense_vectors import SenseVectors
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.analysis.similarity import token_pairs, word_similarity
from elmokit.analysis.surprisal import surprisal
from elmokit.io.conll import TaggedWords
from helpers.senses import sentence, write_index

pytest.importorskip("matplotlib")

SENTENCES = ["the cat saw <the> dog", "a dog saw the cat"]
TOKENS = [text.split() for text in SENTENCES]


def check(result, *parts):
    """HTML with some parts and a picture, the picture alone, and a repr of one line."""
    html = result._repr_html_()
    for part in parts:
        assert part in html, part
    assert "<the>" not in html
    assert "<script" not in html
    assert '<img src="data:image/png;base64,' in html
    assert result._repr_png_().startswith(b"\x89PNG")
    assert result.report().title
    assert "\n" not in repr(result)
    assert len(repr(result)) < 500


def test_similarity(tiny):
    pairs = word_similarity(tiny, *SENTENCES, word="dog")
    assert pairs.report().columns == ["pair", "token layer", "LSTM layer 1", "LSTM layer 2"]
    check(pairs, "dog 5 ~ dog 2", "LSTM layer 2", "&lt;the&gt;")
    check(token_pairs(tiny, *SENTENCES), "whole sentences", "token layer")


def test_scatter(tiny):
    examples = [Example("one", SENTENCES[0], 1), Example("two", SENTENCES[1], 2)]
    check(find_occurrences(tiny, examples, "dog"), "2 occurrences of &#x27;dog&#x27;")


def test_geometry(tiny):
    check(geometry(tiny, TOKENS * 3), "anisotropy", "layer 2")


def test_change(tiny, tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).write_text("\n".join(SENTENCES * 4), encoding="utf-8")
    found = change(tiny, tmp_path / "old", tmp_path / "new", ["dog"], tokenized=True)
    check(found, "Semantic change from old to new", "PRT chance")
    assert found.report().rows[0][0] == "dog"
    assert Changes([])._repr_png_() is None  # nothing to draw


def test_probes(tiny):
    tagged = [TaggedWords(tokens, ["X", "Y", "X", "Y", "X"]) for tokens in TOKENS * 3]
    check(probe(tiny, tagged, tagged), "selectivity", "LSTM layer 1")


def test_language_model(lm):
    check(surprisal(lm, TOKENS[0]), "forward", "&lt;the&gt;")
    check(banded_perplexity(lm, TOKENS), "frequency rank")


def test_index(tiny, tmp_path):
    pytest.importorskip("usearch")
    (tmp_path / "text").write_text("\n".join(SENTENCES), encoding="utf-8")
    options = IndexOptions(tokenized=True)
    summary = build_index(tiny, [tmp_path / "text"], tmp_path / "my-index", options)
    assert ">10<" in summary._repr_html_()
    index = Index.open(tmp_path / "my-index")
    assert "Index my-index" in index._repr_html_()
    assert repr(index) == "Index('my-index', tokens=10)"
    check(neighbours(index, tiny, TOKENS[0], "dog", 2), "in context", "[dog]")


def test_senses(tiny, tmp_path):
    write_index(tmp_path)
    text = [sentence("the bank of a river", "bank%1:17:01::")]
    vectors = SenseVectors.train(tiny, text)
    assert "Sense vectors" in vectors._repr_html_()
    assert len(repr(vectors)) < 300
    check(evaluate(tiny, vectors, WordNet(tmp_path), text), "first sense", "LSTM layer 2")
    tagged = TaggedTokens([TaggedWord(1, 2, "a&b", None), TaggedWord(0, 1, "c", 0.5)], ["x", "y<"])
    html = tagged._repr_html_()
    for part in (">y&lt;<", ">a&amp;b<", ">0.500<"):
        assert part in html
