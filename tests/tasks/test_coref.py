"""Coreference: portions, singletons, long documents, and what is shown."""

import random

import pytest

from elmokit.errors import InputError
from elmokit.tasks import CoreferenceResolver
from elmokit.tasks.coref import Resolved
from elmokit.tasks.inputs import read_inputs
from elmokit.tasks.readers import DocumentExample, read_document_examples
from helpers.task_data import documents

FOUND = Resolved(
    [["the", "old", "man", "put", "on", "his", "hat"], ["he", "left"]],
    [[(0, 3), (5, 6), (7, 8)], [(5, 7)]],
    "a",
)


@pytest.fixture
def small(quick):
    quick["model"] |= {"span_dim": 12, "max_width": 3}
    quick["training"] |= {"epochs": 1, "batch_size": 1}
    return quick


@pytest.fixture
def coref(tiny, small):
    return CoreferenceResolver.train(documents(6), documents(3, 1), elmo=tiny, settings=small)


def test_singletons_are_learned_if_the_data_has_them(tiny, small):
    small["training"] |= {"epochs": 12, "batch_size": 4, "learning_rate": 0.02}
    some = documents(8)
    resolver = CoreferenceResolver.train(some, some, elmo=tiny, settings=small)
    assert resolver.labels == ["cluster", "singleton"]
    assert any(len(c) == 1 for found in resolver.predict(some) for c in found.clusters)
    larger = [
        DocumentExample(e.sentences, e.name, [c for c in e.clusters if len(c) > 1]) for e in some
    ]
    resolver = CoreferenceResolver.train(larger, larger, elmo=tiny, settings=small)
    assert resolver.labels == ["cluster"]
    found = resolver.predict(some)
    assert all(len(c) > 1 for document in found for c in document.clusters)


def test_predictions_do_not_depend_on_the_batch(coref):
    several = [
        DocumentExample(a.sentences + b.sentences * n)
        for n, (a, b) in enumerate(zip(documents(6, 3), documents(6, 4), strict=True))
    ]
    assert coref.predict(several, 1) == coref.predict(several, 4) == coref.predict(several)


def test_a_step_sees_a_part_of_a_long_document(coref):
    example = DocumentExample(
        [["a", "b"], ["c"], ["d", "e", "f"], ["g"]],
        "x",
        [[(0, 1), (3, 4), (6, 7)], [(3, 6)], [(1, 2)]],
    )
    coref.settings.model.__dict__["train_sentences"] = 2
    rng, found = random.Random(0), set()
    for _ in range(20):
        part = coref.portion(coref.prepare(example), rng)
        assert len(part.example.sentences) == 2
        texts = [[part.example.text(*m) for m in c] for c in part.example.clusters]
        found.add(str(texts))
        assert part.places[-1][1] == part.length
    assert found == {"[['a'], ['b']]", "[['d'], ['d e f']]", "[['d', 'g'], ['d e f']]"}
    short = coref.prepare(DocumentExample([["a"], ["b"]], "", []))
    assert coref.portion(short, rng) is short


def test_the_same_seed_gives_the_same_portions(tiny, small, one_thread):
    small["model"]["train_sentences"] = 1
    small["training"]["epochs"] = 2
    said = [], []
    for lines in said:
        CoreferenceResolver.train(
            documents(6), documents(3, 1), elmo=tiny, settings=small,
            say=lambda line, lines=lines: lines.append(line.split(", dev")[0]),
        )  # fmt: skip
    assert said[0] == said[1]


def test_sentences_share_rows(coref):
    lengths = [40, 50, 20, 600, 3]
    example = DocumentExample([["w"] * n for n in lengths])
    prepared = coref.prepare(example)
    assert [[len(s) for s in row] for row in prepared.texts] == [
        [40, 50], [20], [250], [250], [100], [3],
    ]  # fmt: skip
    assert prepared.length == 250
    (found,) = coref.predict([example])
    assert found.sentences == example.sentences


def test_a_list_of_sentences_is_one_document(coref):
    sentences = [["Ann", "left", "."], ["She", "slept", "."]]
    assert coref(sentences) == coref([sentences])[0] == coref.predict([sentences])[0]


def test_what_is_given(coref):
    text = "Ann met Bob . She slept .\n\nHe left"
    found = coref(text)
    assert found.sentences == [["Ann", "met", "Bob", "."], ["She", "slept", "."], ["He", "left"]]
    assert coref([text])[0] == coref.predict([found.sentences])[0] == found
    assert coref([DocumentExample(found.sentences, "x")])[0].name == "x"
    with pytest.raises(InputError, match="each sentence must be a list of words"):
        coref.predict([["one", "sentence"]])
    with pytest.raises(InputError, match="a string, or a list of sentences"):
        coref.predict([5])
    with pytest.raises(InputError, match="text must be a document with words"):
        coref.predict([[]])
    no_clusters = [DocumentExample([["a"]], "", [])]
    with pytest.raises(InputError, match="no clusters of two or more mentions"):
        CoreferenceResolver.train(no_clusters, no_clusters, elmo=coref.elmo)


def test_a_file_is_a_document(coref, file):
    path = file("a.txt", "Ann met Bob.\nShe slept.\n\nHe left.\n")
    (found,) = read_inputs(coref, path).items
    assert len(found.example.sentences) == 3
    (blank,) = read_inputs(coref, file("b.txt", "\n\n")).items
    assert blank.example is None
    assert coref.record(None) == {"sentences": [], "clusters": [], "mentions": []}


def test_what_is_shown(coref):
    assert coref.show(FOUND) == "a [the old man 1] put on [[his 1] hat 2]\n[he 1] left"
    groups = {mark.label: mark.group for text in coref.marked(FOUND) for mark in text.marks}
    assert groups == {"1": 0, "2": 1}
    assert coref.record(FOUND)["clusters"] == [[[0, 2], [5, 5], [7, 7]], [[5, 6]]]
    assert coref.record(FOUND)["mentions"] == [["the old man", "his", "he"], ["his hat"]]


def test_conll_can_be_read_again(coref, file):
    nested = Resolved([list("abcd"), ["e"]], [[(0, 4), (4, 5)], [(0, 1)], [(0, 2), (3, 4)]], "x y")
    for found in (FOUND, nested):
        (again,) = read_document_examples(file("a.conll", coref.to_conll(found)))
        assert again == DocumentExample(found.sentences, found.name, sorted(found.clusters))


def test_long_documents(coref):
    """5,000 words: several parts of a document, and more spans than a block."""
    long = DocumentExample([["Ann", "met", "Bob", "."], ["She", "slept", "."]] * 715)
    (found,) = coref.predict([long])
    assert len(found.sentences) == 1430
