"""spaCy: elmokit.Elmo.v1 and the component elmo give the vectors of Elmo.encode."""

import pickle

import numpy as np
import pytest
import torch

from elmokit import Elmo, FormatError, InputError, ModelNotFoundError
from elmokit.nn import ScalarMix
from helpers.models import SENTENCES, TINY, write_published

spacy = pytest.importorskip(
    "spacy", reason="spaCy is not installed; pip install 'elmokit[spacy]' to test it"
)
from spacy.tokens import Doc, DocBin, Span  # noqa: E402
from thinc.api import Adam, ConfigValidationError  # noqa: E402

from elmokit.integrations.spacy import build_elmo, set_hooks  # noqa: E402
from elmokit.integrations.spacy_bilm import sentences  # noqa: E402

TEXT = "The cat sat on a mat.  \n\n(It slept.) Why?!  He said: “No.” “Yes,” I said. "
SPLIT = [
    "The cat sat on a mat .",
    "( It slept . )",
    "Why ? !",
    "He said : “ No . ”",
    "“ Yes , ” I said .",
]


@pytest.fixture
def nlp():
    return spacy.blank("en")


@pytest.fixture
def docs(nlp):
    """Ragged documents: of several sentences, of one, with white space, empty."""
    made = [Doc(nlp.vocab, words) for words in SENTENCES]
    return [nlp(TEXT), *made, nlp(" \n "), nlp("One two  three")]


def expected(elmo, doc, layers="mix"):
    """The array of a document, from Elmo.encode of each sentence."""
    found = np.zeros((len(doc), elmo.dim), np.float32)
    for positions in sentences(doc):
        found[positions] = elmo.encode([[doc[i].text for i in positions]], layers)[0]
    return found


def close(found, wanted):
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=1e-5 * max(1, np.abs(wanted).max(initial=0))
    )


@pytest.mark.parametrize("layers", ["mix", "average", "top", 0, -2])
def test_vectors_are_those_of_encode(tiny, tiny_folder, docs, layers):
    model = build_elmo(str(tiny_folder), layers)
    model.initialize()
    assert model.get_dim("nO") == tiny.dim
    found = model.predict(docs)
    assert [len(array) for array in found] == [len(doc) for doc in docs]
    for doc, array in zip(docs, found, strict=True):
        assert array.dtype == np.float32
        close(array, expected(tiny, doc, layers))
    assert np.abs(found[0]).sum(1).astype(bool).tolist() == [not t.is_space for t in docs[0]]


def test_a_document_is_split_at_sentence_ends(nlp):
    doc = nlp(TEXT)
    assert [" ".join(doc[i].text for i in positions) for positions in sentences(doc)] == SPLIT
    assert sentences(nlp("")) == sentences(nlp(" \n\n")) == []


def test_white_space_changes_no_other_vector(tiny_folder, nlp):
    model = build_elmo(str(tiny_folder))
    words = "Hi . ( The end . ) Bye".split()
    spaced = ["\n\n", "Hi", ".", " \n", "(", "The", "  ", "end", ".", "\t", ")", " ", "Bye", "\n"]
    plain, odd = model.predict([Doc(nlp.vocab, words), Doc(nlp.vocab, spaced)])
    close(odd[[bool(word.strip()) for word in spaced]], plain)


def test_sentences_of_the_document_are_respected(tiny, tiny_folder, nlp):
    words = "The cat sat on a mat".split()
    doc = Doc(nlp.vocab, words, sent_starts=[True, False, False, True, False, False])
    (found,) = build_elmo(str(tiny_folder)).predict([doc])
    close(found, np.concatenate(tiny.encode([words[:3], words[3:]])))
    assert np.abs(found[2] - expected(tiny, Doc(nlp.vocab, words))[2]).max() > 1e-3


def test_gradients_are_those_of_torch(tiny, tiny_folder, docs):
    model = build_elmo(str(tiny_folder), dropout=0)
    model.initialize()
    model.set_param("weights", np.array([0.3, -0.5, 0.1], "f"))
    model.set_param("gamma", np.array([1.7], "f"))
    vectors, backprop = model.begin_update(docs)
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=v.shape).astype("f") for v in vectors]
    assert backprop(gradients) == []
    mix = ScalarMix(3, [0.3, -0.5, 0.1], 1.7)
    loss = torch.tensor(0.0)
    for doc, own, gradient in zip(docs, vectors, gradients, strict=True):
        for positions in sentences(doc):
            words = [doc[i].text for i in positions]
            mixed = mix(torch.from_numpy(tiny.encode([words], "all")[0]))
            close(own[positions], mixed.detach().numpy())
            loss = loss + (mixed * torch.from_numpy(gradient[positions])).sum()
    loss.backward()
    close(model.get_grad("weights"), mix.weights.grad.numpy())
    close(model.get_grad("gamma"), mix.gamma.grad.reshape(1).numpy())


def test_only_the_mix_learns_and_is_saved(tiny_folder, docs):
    model = build_elmo(str(tiny_folder))
    model.initialize()
    before = [p.detach().clone() for p in model.shims[0].elmo.bilm.parameters()]
    optimizer = Adam(0.1)
    for _ in range(3):
        vectors, backprop = model.begin_update(docs)
        backprop([v - 1 for v in vectors])
        model.finish_update(optimizer)
    assert np.abs(model.get_param("weights")).min() > 0
    assert abs(model.get_param("gamma")[0] - 1) > 0.05
    for now, then in zip(model.shims[0].elmo.bilm.parameters(), before, strict=True):
        assert torch.equal(now, then)
    own = model.shims[0].elmo.mix
    assert (own.weights.tolist(), own.gamma.item()) == ([0, 0, 0], 1)
    data = model.to_bytes()
    assert len(data) < 1000
    other = build_elmo(str(tiny_folder)).from_bytes(data)
    assert other.to_bytes() == data
    for found, wanted in zip(other.predict(docs), model.predict(docs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert model.copy().shims[0].elmo is model.shims[0].elmo


def test_dropout_is_its_own_and_for_training_only(tiny_folder, docs):
    model = build_elmo(str(tiny_folder), dropout=0.5)
    kept = [v != 0 for v in model.predict(docs)]
    vectors, _ = model.begin_update(docs)
    share = sum(map(np.count_nonzero, vectors)) / sum(map(np.count_nonzero, kept))
    assert 0.4 < share < 0.6


def test_training_reads_a_sentence_once(tiny_folder, docs, monkeypatch):
    read, stream = [], Elmo.stream

    def counted(elmo, texts, *arguments):
        texts = list(texts)
        read.extend(texts)
        return stream(elmo, texts, *arguments)

    monkeypatch.setattr(Elmo, "stream", counted)
    for cache_mb in (1, 0):
        model = build_elmo(str(tiny_folder), dropout=0, cache_mb=cache_mb)
        first = model.predict(docs)
        n = len(read)
        for _ in range(2):
            found, _ = model.begin_update(docs)
        last = model.predict(docs)
        assert len(read) - n == (n if cache_mb else 3 * n)
        for wanted, *others in zip(first, found, last, strict=True):
            close(others[0], wanted)
            close(others[1], wanted)
        read.clear()


def test_the_component_gives_vectors(tiny, tiny_folder, nlp):
    nlp.add_pipe("elmo", config={"model": str(tiny_folder), "layers": "top"})
    river, money = nlp("He sat by the bank.  The bank of the river"), nlp("The bank lent money")
    close(river.tensor, expected(tiny, river, "top"))
    one, two = river[4], money[1]
    np.testing.assert_array_equal(one.vector, river.tensor[4])
    words = [i for i in range(len(river)) if not river[i].is_space]
    close(river.vector, river.tensor[words].mean(0))
    close(river[3:5].vector, river.tensor[3:5].mean(0))
    close(river[5:8].vector, river.tensor[[5, 7]].mean(0))  # the token between is white space
    cosine = one.vector @ two.vector / np.linalg.norm(one.vector) / np.linalg.norm(two.vector)
    assert one.similarity(two) == pytest.approx(cosine, abs=1e-5)
    assert one.similarity(two) < 0.999  # spaCy itself would say 1 for the same word
    assert one.similarity(one) == pytest.approx(1, abs=1e-5)
    assert river.similarity(river[:]) == pytest.approx(1, abs=1e-5)
    assert one.has_vector
    assert one.vector_norm == pytest.approx(np.linalg.norm(one.vector), rel=1e-5)
    assert not river[6].has_vector
    assert river[6].similarity(one) == 0
    assert Span(river, 2, 2).vector.tolist() == [0] * tiny.dim
    with pytest.raises(InputError, match="width 0, not 16"):
        river.similarity(spacy.blank("en")("no vectors"))


def test_empty_documents(tiny_folder, nlp):
    nlp.add_pipe("elmo", config={"model": str(tiny_folder)})
    for text in ("", " \n"):
        doc = nlp(text)
        assert doc.tensor.shape == (len(doc), 16)
        assert doc.vector.tolist() == [0] * 16
    assert [doc.tensor.shape for doc in nlp.pipe(["", "a b", ""])] == [(0, 16), (2, 16), (0, 16)]


def test_documents_that_were_stored(tiny_folder, nlp):
    nlp.add_pipe("elmo", config={"model": str(tiny_folder)})
    doc = nlp("The bank of  the river")
    copied = pickle.loads(pickle.dumps(doc))
    assert copied[1].similarity(doc[3]) == doc[1].similarity(doc[3])
    with pytest.warns(UserWarning, match="W109"):  # spaCy cannot save hooks
        data = doc.to_bytes()
    close(set_hooks(Doc(nlp.vocab).from_bytes(data)).vector, doc.vector)
    (stored,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
    assert stored.tensor.size == 0
    close(nlp.get_pipe("elmo")(stored).tensor, doc.tensor)


def test_errors_of_a_document_reach_the_handler(tiny_folder, nlp):
    nlp.add_pipe("elmo", config={"model": str(tiny_folder)})
    nlp.get_pipe("elmo").model.attrs["layers"] = 7
    with pytest.raises(InputError, match="numbers from 0 to 2"):
        nlp("A text")
    seen = []
    nlp.set_error_handler(lambda name, pipe, docs, error: seen.append((name, len(docs))))
    assert list(nlp.pipe(["A text", "Another"])) == []
    assert seen == [("elmo", 2)]


def test_a_model_that_is_not_there(tmp_path, tiny_folder, nlp):
    with pytest.raises(ModelNotFoundError, match="there is no model .*store = true"):
        build_elmo("nowhere").initialize()
    data = build_elmo(str(tiny_folder)).to_bytes()
    other = write_published(tmp_path / "other", TINY, seed=5)
    with pytest.raises(FormatError, match="made with another biLM than"):
        build_elmo(str(other)).from_bytes(data).predict([nlp("a")])


def test_wrong_settings(tiny_folder, nlp):
    with pytest.raises(InputError, match="the width 16, not 96; set width = 16"):
        build_elmo(str(tiny_folder), width=96).initialize()
    with pytest.raises(InputError, match="layers must be mix, average, top"):
        build_elmo(layers="all")
    with pytest.raises(InputError, match="dropout must be a number from 0"):
        build_elmo(dropout=1)
    with pytest.raises(ConfigValidationError, match="layers"):
        nlp.add_pipe("elmo", config={"layers": "all"})


def test_the_model_can_travel_with_the_pipeline(tmp_path, nlp):
    own = write_published(tmp_path / "own", TINY, seed=3, vocabulary=["<S>", "</S>", "<UNK>", "a"])
    model = build_elmo(str(own), store=True)
    wanted = model.predict([nlp("The cat sat")])[0]
    data = model.to_bytes()
    for file in own.iterdir():
        file.unlink()
    moved = build_elmo(str(own), store=True).from_bytes(data)
    assert moved.copy().to_bytes() == data  # before it is loaded
    np.testing.assert_array_equal(moved.predict([nlp("The cat sat")])[0], wanted)
    again = build_elmo(str(own), store=False).from_bytes(moved.to_bytes())
    np.testing.assert_array_equal(again.predict([nlp("The cat sat")])[0], wanted)
    assert len(again.to_bytes()) < 1000 < len(data)
    assert b"softmax." not in data  # the prefix of its weights


def test_models_can_be_pickled(tiny_folder, docs):
    """As processes that are started, not forked, need it."""
    model = build_elmo(str(tiny_folder))
    wanted = model.predict(docs)
    other = pickle.loads(pickle.dumps(model))
    for found, own in zip(other.predict(docs), wanted, strict=True):
        np.testing.assert_array_equal(found, own)


def test_the_bundled_model_in_one_line(nlp):
    nlp.add_pipe("elmo")
    doc = nlp("I sat by the bank of the river. She has an account at the bank.")
    close(doc.tensor, expected(Elmo.load(device="cpu"), doc))
    river, money = (token for token in doc if token.text == "bank")
    assert 0 < river.similarity(money) < 0.95
    assert len(nlp.get_pipe("elmo").to_bytes()) < 1000
