"""flair's models on ELMo embeddings: train, save, and load in a new process."""

import json
import logging
import re
import runpy
import subprocess
import sys

import pytest
import torch

# ruff: noqa: E402  # without flair, nothing below can be imported
flair = pytest.importorskip("flair", reason="flair is not installed: pip install 'elmokit[flair]'")

from flair.data import Corpus, Dictionary, Sentence
from flair.embeddings import (
    CharacterEmbeddings,
    DocumentPoolEmbeddings,
    DocumentRNNEmbeddings,
    OneHotEmbeddings,
    StackedEmbeddings,
)
from flair.models import SequenceTagger, TextClassifier
from flair.trainers import ModelTrainer

from elmokit.integrations.flair import ELMoEmbeddings
from helpers.docs import ROOT

pytestmark = [
    # flair 0.15 calls what PyTorch calls otherwise now
    pytest.mark.filterwarnings("ignore:`torch.cuda.amp.GradScaler:FutureWarning"),
]

NAMES = ["Anna", "Paris", "Blue Ocean", "Peter Smith"]
PLAIN = ["moved to", "saw", "wrote a letter to", "and"]
NEW = ["Peter saw Anna .", "Blue Smith moved to Paris and saw Ocean .", "Paris", "a letter"]

# Loads saved models and prints what they find. It never imports ElmoKit itself.
LOADER = """
import json, sys
from flair.data import Sentence
from flair.models import SequenceTagger, TextClassifier
for line in sys.stdin:
    kind, file, texts = json.loads(line)
    model = (SequenceTagger if kind == "tags" else TextClassifier).load(file)
    found = []
    for text in texts:
        sentence = Sentence(text.split())
        model.predict(sentence)
        found.append([[i.data_point.text, i.value, i.score] for i in sentence.labels])
    print("\\nFOUND", json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def loader():
    """A process that knows nothing of this one; all tests share it, as importing flair is slow."""
    with subprocess.Popen(
        [sys.executable, "-c", LOADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def sentences():
    """Texts with a span for every name, and a class."""
    for i in range(24):
        first, verb, second = NAMES[i % 4], PLAIN[i % 3], NAMES[(i // 2) % 4]
        words = first.split()
        sentence = Sentence([*words, *verb.split(), *second.split(), "."])
        sentence[: len(words)].add_label("ner", "NAME")
        sentence[-1 - len(second.split()) : -1].add_label("ner", "NAME")
        sentence.add_label("verb", verb.split()[0])
        yield sentence


@pytest.fixture
def corpus():
    flair.set_seed(0)
    return Corpus(list(sentences()), list(sentences())[:6], list(sentences())[6:12])


def train(model, corpus, folder, epochs=3):
    """Train a model; its loss must fall."""
    before = loss(model)
    ModelTrainer(model, corpus).train(
        folder,
        optimizer=torch.optim.AdamW,
        learning_rate=0.02,
        mini_batch_size=4,
        max_epochs=epochs,
        embeddings_storage_mode="cpu",
    )
    assert loss(model) < 0.8 * before


def loss(model):
    return float(model.evaluate(list(sentences()), model.label_type).loss)


def found(model):
    sentences = [Sentence(text.split()) for text in NEW]
    model.predict(sentences)
    return [[[i.data_point.text, i.value, i.score] for i in s.labels] for s in sentences]


def same_in_a_new_process(model, kind, folder, loader):
    """Save a model, load it in another process, and compare what both find."""
    file = folder / "model.pt"
    model.save(file)
    print(json.dumps([kind, str(file), NEW]), file=loader.stdin, flush=True)
    answer = next(line for line in loader.stdout if line.startswith("FOUND "))
    here, there = found(model), json.loads(answer.removeprefix("FOUND "))
    assert any(here)
    for ours, theirs in zip(here, there, strict=True):
        assert [item[:2] for item in ours] == [item[:2] for item in theirs]
        assert [i[2] for i in ours] == pytest.approx([i[2] for i in theirs], rel=1e-4)
    return file


def characters():
    dictionary = Dictionary()
    for character in sorted(set("".join(NAMES + PLAIN))):
        dictionary.add_item(character)
    return dictionary


def others(corpus):
    """Embeddings that flair learns; it does not save the name of one-hot ones, so they are last."""
    return [
        CharacterEmbeddings(characters(), 5, 5),
        OneHotEmbeddings.from_corpus(corpus, min_freq=1, embedding_length=6),
    ]


def tagger_of(embeddings, corpus):
    return SequenceTagger(
        embeddings,
        corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=16,
        reproject_embeddings=False,
        dropout=0.0,
        word_dropout=0.0,
        locked_dropout=0.0,
    )


@pytest.mark.parametrize("mode", ["average", "mix"])
def test_a_tagger(mode, corpus, tiny_folder, tmp_path, loader):
    embeddings = ELMoEmbeddings(tiny_folder, embedding_mode=mode)
    tagger = tagger_of(embeddings, corpus)
    train(tagger, corpus, tmp_path, epochs=8)
    if mode == "mix":
        assert embeddings.mix.weights.detach().abs().min() > 0
        assert embeddings.mix.gamma.item() != 1
    file = same_in_a_new_process(tagger, "tags", tmp_path, loader)
    names = torch.load(file, weights_only=False)["state_dict"]
    assert {n for n in names if n.startswith("embeddings.")} == (
        {"embeddings.mix.weights", "embeddings.mix.gamma"} if mode == "mix" else set()
    )


@pytest.mark.parametrize("place", [0, 1])
def test_a_stack(place, corpus, tiny_folder, tmp_path, loader):
    """The place in the stack decides the name, and the name where a token's vector begins."""
    stack = others(corpus)
    stack.insert(place, ELMoEmbeddings(tiny_folder))
    tagger = tagger_of(StackedEmbeddings(stack), corpus)
    train(tagger, corpus, tmp_path)
    same_in_a_new_process(tagger, "tags", tmp_path, loader)


def test_two_models_in_a_stack(corpus, tiny_folder, lm_folder):
    one, two = ELMoEmbeddings(tiny_folder), ELMoEmbeddings(lm_folder, embedding_mode="top")
    sentence = Sentence(["Anna", "saw"])
    StackedEmbeddings([one, two]).embed(sentence)
    assert sentence[0].embedding.shape == (one.embedding_length + two.embedding_length,)
    assert torch.equal(sentence[0].embedding[-16:], sentence[0].get_embedding([two.name]))


@pytest.mark.parametrize(
    ("kind", "mode"), [(DocumentPoolEmbeddings, "all"), (DocumentRNNEmbeddings, "mix")]
)
def test_a_classifier(kind, mode, corpus, tiny_folder, tmp_path, loader):
    embeddings = ELMoEmbeddings(tiny_folder, embedding_mode=mode)
    extra = {"fine_tune_mode": "linear"} if kind is DocumentPoolEmbeddings else {"dropout": 0.0}
    classifier = TextClassifier(
        kind([embeddings], **extra),
        label_type="verb",
        label_dictionary=corpus.make_label_dictionary("verb"),
    )
    before = [parameter.detach().clone() for parameter in embeddings.parameters()]
    train(classifier, corpus, tmp_path, epochs=12)
    for old, new in zip(before, embeddings.parameters(), strict=True):
        assert not torch.equal(old, new)
    same_in_a_new_process(classifier, "classes", tmp_path, loader)


def test_a_tagger_on_the_bundled_model_is_small(corpus, tmp_path, loader):
    tagger = tagger_of(ELMoEmbeddings("en", embedding_mode="top"), corpus)
    train(tagger, corpus, tmp_path, epochs=2)
    file = same_in_a_new_process(tagger, "tags", tmp_path, loader)
    n_numbers = sum(parameter.numel() for parameter in tagger.parameters())
    assert file.stat().st_size < 4 * n_numbers + 100_000


def test_the_example_runs(monkeypatch, capfd):
    path = ROOT / "examples/flair_ner.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.setattr(logging.getLogger("flair"), "level", logging.WARNING)
    runpy.run_path(str(path), run_name="__main__")
    first, *lines = capfd.readouterr().out.splitlines()
    assert first == "27 sentences, 9 sentences, 9 sentences"
    scores = [
        float(re.fullmatch(r".*: F1 ([0-9.]+), [0-9]+ s, [0-9.]+ MB", i)[1]) for i in lines[:2]
    ]
    assert scores[1] > scores[0]
    assert len(lines) > 2  # what the second tagger finds in a new sentence
