"""spaCy's own commands on pipelines with ELMo: configs, train, evaluate, package, processes."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from helpers.docs import ROOT
from helpers.models import TINY, write_published

spacy = pytest.importorskip(
    "spacy", reason="spaCy is not installed; pip install 'elmokit[spacy]' to test it"
)
from spacy.cli import app  # noqa: E402
from spacy.tokens import Doc, DocBin  # noqa: E402
from spacy.training import Example  # noqa: E402
from thinc.api import Adam  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

TAGGER = """
[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = ${components.tok2vec.model.width}

"""
NAMES = {"PER": ["Anna", "Boris", "Chloe"], "LOC": ["Paris", "Rome", "Oslo"]}
TEXTS = ["Anna saw Rome.", "The river.  \n\nBoris left Oslo!", "", "Chloe slept. Anna too"]

LOAD = """
import json, sys, numpy as np, spacy
nlp = spacy.load(sys.argv[1])
texts = json.loads(sys.argv[2])
docs = list(nlp.pipe(texts))  # in several threads, before the fork
docs += nlp.pipe(texts, n_process=2, batch_size=2)
np.savez(sys.argv[3], *[doc.tensor for doc in docs])
print(json.dumps([[[str(e) for e in doc.ents], [t.tag_ for t in doc]] for doc in docs]))
"""


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def in_another_process(pipeline, folder):
    """What a new process predicts, and then two forked ones: names and tags, and the vectors."""
    arrays = folder / "vectors.npz"
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(pipeline), json.dumps(TEXTS), str(arrays)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    with np.load(arrays) as found:
        return json.loads(done.stdout), [found[name] for name in found]


def described(docs):
    return [[[str(entity) for entity in doc.ents], [t.tag_ for t in doc]] for doc in docs]


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1, np.abs(b).max(initial=0)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a config, data, and a pipeline that was trained on them; and its biLM."""
    folder = tmp_path_factory.mktemp("spacy")
    bilm = write_published(folder / "bilm", TINY)
    vocab = spacy.blank("en").vocab
    docs = [
        Doc(
            vocab,
            [person, "saw", place, ".", "The", "river", "."],
            ents=["B-PER", "O", "B-LOC", "O", "O", "O", "O"],
            tags=["NAME", "VERB", "NAME", "END", "THE", "NOUN", "END"],
        )
        for person in NAMES["PER"]
        for place in NAMES["LOC"]
    ]
    DocBin(docs=docs).to_disk(folder / "docs.spacy")
    text = (ROOT / "benchmarks/spacy_ner.cfg").read_text(encoding="utf-8")
    text = text.replace('model = "en"\nwidth = 768', f'model = "{bilm}"\nwidth = 16')
    text = text.replace('"ner"]', '"ner", "tagger"]').replace("[corpora]", TAGGER + "[corpora]")
    text = text.replace("ents_f = 1.0", "ents_f = 0.5\ntag_acc = 0.5")
    (folder / "base.cfg").write_text(text, encoding="utf-8")
    command("init", "fill-config", folder / "base.cfg", folder / "full.cfg")
    data = ["--paths.train", folder / "docs.spacy", "--paths.dev", folder / "docs.spacy"]
    train = ["--training.max_epochs", 40, "--training.batcher.size", 30]
    train += ["--training.optimizer.learn_rate", 0.02, "--components.tok2vec.model.dropout", 0]
    command("train", folder / "full.cfg", "--output", folder / "out", *data, *train)
    return folder


@pytest.fixture(scope="module")
def best(trained):
    return trained / "out" / "model-best"


def test_the_config_is_filled_and_valid(trained):
    full = spacy.util.load_config(trained / "full.cfg")
    elmo = full["components"]["tok2vec"]["model"]
    assert elmo["@architectures"] == "elmokit.Elmo.v1"
    assert (elmo["layers"], elmo["dropout"], elmo["store"]) == ("mix", 0.5, False)
    files = ["--paths.train", trained / "docs.spacy", "--paths.dev", trained / "docs.spacy"]
    assert "Config is valid" in command("debug", "config", trained / "full.cfg", *files)


def test_it_has_learned(trained, best):
    command("evaluate", best, trained / "docs.spacy", "--output", trained / "scores.json")
    scores = json.loads((trained / "scores.json").read_text())
    assert scores["ents_f"] > 0.9
    assert scores["tag_acc"] > 0.9
    model = spacy.load(best).get_pipe("tok2vec").model
    assert np.abs(model.get_param("weights")).min() > 0
    assert model.get_param("gamma")[0] != 1


def test_its_files_are_small(best):
    assert (best / "tok2vec" / "model").stat().st_size < 1000


def test_other_processes_predict_the_same(trained, best):
    docs = list(spacy.load(best).pipe(TEXTS))
    assert docs[0].ents
    predicted, arrays = in_another_process(best, trained)
    assert predicted == 2 * described(docs)
    close(arrays, 2 * [doc.tensor for doc in docs])


def test_a_listener_can_get_its_own_copy(best):
    nlp = spacy.load(best)
    wanted = described(nlp.pipe(TEXTS))
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
    assert described(nlp.pipe(TEXTS)) == wanted


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # spaCy leaves files to be closed
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_package_that_contains_its_model_works_elsewhere(trained, best, tmp_path):
    nlp = spacy.load(best, config={"components.tok2vec.model.store": True})
    wanted = list(nlp.pipe(TEXTS))
    nlp.to_disk(tmp_path / "portable")
    command("package", tmp_path / "portable", tmp_path, "--name", "elmo_names", "--build", "none")
    (package,) = tmp_path.glob("en_elmo_names-*")
    assert "elmokit" in (package / "meta.json").read_text()  # pip installs it with the package
    (data,) = package.glob("en_elmo_names/en_elmo_names-*")
    hidden = trained / "hidden"
    shutil.move(trained / "bilm", hidden)
    try:
        predicted, arrays = in_another_process(data, tmp_path)
    finally:
        shutil.move(hidden, trained / "bilm")
    assert predicted == 2 * described(wanted)
    close(arrays, 2 * [doc.tensor for doc in wanted])


SIZES = {"depth": 1, "window_size": 1, "maxout_pieces": 2}
CNN = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 8, "embed_size": 100, **SIZES}
CNN |= {"subword_features": True, "pretrained_vectors": None}
ENCODE = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 16, **SIZES}


@pytest.mark.parametrize("kind", ["alone", "under a CNN", "beside a CNN"])
def test_it_fits_into_other_networks(kind, tiny_folder):
    elmo = {"@architectures": "elmokit.Elmo.v1", "model": str(tiny_folder), "dropout": 0}
    tok2vec = {
        "alone": elmo,
        "under a CNN": {"@architectures": "spacy.Tok2Vec.v2", "embed": elmo, "encode": ENCODE},
        "beside a CNN": {"@layers": "concatenate.v1", "*": {"elmo": elmo, "cnn": CNN}},
    }[kind]
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    tagger = nlp.add_pipe("tagger", config={"model": model})
    doc = Doc(nlp.vocab, ["Anna", "slept", "."], tags=["NAME", "VERB", "END"])
    example = Example(nlp.make_doc("Anna slept."), doc)
    nlp.initialize(lambda: [example])
    optimizer = Adam(0.02)
    losses = [nlp.update([example], sgd=optimizer)["tagger"] for _ in range(30)]
    assert losses[-1] < losses[0] / 2
    (node,) = [node for node in tagger.model.walk() if node.name == "elmo"]
    assert np.abs(node.get_param("weights")).min() > 0


FORK = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
texts = ["The cat sat on the mat and slept for a long time ."] * 8
before = [doc.tensor for doc in nlp.pipe(texts)]
after = [doc.tensor for doc in nlp.pipe(texts, n_process=2, batch_size=4)]
print(max(abs(a - b).max() for a, b in zip(before, after, strict=True)))
"""


def test_forks_do_not_hang():
    """A biLM of a usual size starts threads, which a forked process does not have."""
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-4
