"""Saved task models."""

import json
import subprocess
import sys

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.errors import FormatError, ModelNotFoundError
from elmokit.tasks import NerTagger, PosTagger, TextClassifier, load
from helpers.task_data import reviews, tagged

SENTENCE = ["Ann", "went", "to", "New", "York", "."]


@pytest.fixture
def saved(tiny, quick, tmp_path):
    quick["training"]["epochs"] = 2
    vectors = tmp_path / "vectors.txt"
    words = sorted({word for example in tagged(40) for word in example.words})
    rng = np.random.default_rng(0)
    vectors.write_text("".join(f"{w} {' '.join(map(str, rng.random(3)))}\n" for w in words))
    quick["input"]["vectors"] = str(vectors)
    ner = NerTagger.train(tagged(40), tagged(9, 1), elmo=tiny, settings=quick, out=tmp_path / "ner")
    vectors.unlink()  # a saved model needs no other files
    return ner


def test_a_fresh_process_predicts_the_same(saved, tmp_path):
    code = (
        "import json, sys; from elmokit.tasks import load\n"
        "task = load(sys.argv[1], device='cpu')\n"
        "print(json.dumps(task.predict([json.loads(sys.argv[2])])[0].tags))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ner"), json.dumps(SENTENCE)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == saved.predict([SENTENCE])[0].tags


def test_it_is_complete(saved, tmp_path):
    folder = tmp_path / "ner" / "best"
    assert {p.name for p in folder.iterdir()} == {
        "task.json", "head.safetensors", "vectors.txt", "bilm", "README.md",
    }  # fmt: skip
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "B-LOC" in card
    assert "layer weights at input" in card
    again = load(folder, device="cpu")
    assert isinstance(again, NerTagger)
    again.save(tmp_path / "copy")
    assert load(tmp_path / "copy", device="cpu").predict([SENTENCE]) == saved.predict([SENTENCE])


def test_a_bundled_bilm_is_named(quick, tmp_path):
    quick["training"]["epochs"] = 1
    elmo = Elmo.load(device="cpu")
    classifier = TextClassifier.train(reviews(12), reviews(4, 1), elmo=elmo, settings=quick)
    classifier.save(tmp_path / "x")
    assert not (tmp_path / "x" / "bilm").exists()
    values = json.loads((tmp_path / "x" / "task.json").read_text())
    assert values["bilm"]["name"] == "en"
    assert load(tmp_path / "x", elmo=elmo)("good").label in ("neg", "pos")
    values["bilm"]["sha256"] = "0"
    (tmp_path / "x" / "task.json").write_text(json.dumps(values))
    with pytest.raises(FormatError, match="another version of the biLM en"):
        load(tmp_path / "x", device="cpu")


def test_what_is_not_a_task_model(saved, tmp_path):
    folder = tmp_path / "ner" / "best"
    with pytest.raises(ModelNotFoundError, match=r"it has no task\.json"):
        load(tmp_path)
    with pytest.raises(FormatError, match="is a model for 'ner', not for pos"):
        PosTagger.load(folder)
    values = json.loads((folder / "task.json").read_text())
    for change, message in (
        ({"format_version": 99}, "update ElmoKit"),
        ({"task": "cooking"}, "unknown task 'cooking'"),
        ({"labels": ["O"]}, "does not fit its task.json"),
        ({"settings": 5}, "must be|not a complete"),
    ):
        (folder / "task.json").write_text(json.dumps(values | change))
        with pytest.raises((FormatError, ValueError), match=message):
            load(folder, device="cpu")
    (folder / "task.json").write_text("{")
    with pytest.raises(FormatError, match="copy it again"):
        load(folder)
    (folder / "task.json").write_text(json.dumps(values))
    head = folder / "head.safetensors"
    head.write_bytes(head.read_bytes()[:-10])
    with pytest.raises(FormatError, match="not a complete task model"):
        load(folder, device="cpu")
