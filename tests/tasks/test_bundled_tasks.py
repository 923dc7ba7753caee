"""The task models in the package."""

import json
import time

import pytest

from elmokit import Elmo
from elmokit.errors import InputError, ModelNotFoundError
from elmokit.tasks import NerTagger, PosTagger, RoleLabeller, load
from elmokit.tasks.names import BUNDLED, TASKS, bundled_tasks

MOST_BYTES = 3_000_000
CLASSES = {"ner": NerTagger, "pos": PosTagger, "srl": RoleLabeller}


@pytest.fixture(scope="module")
def elmo():
    return Elmo.load("en", device="cpu")


def test_which_there_are():
    assert bundled_tasks() == sorted(CLASSES)
    assert set(CLASSES) <= set(TASKS)


@pytest.mark.parametrize("name", CLASSES)
def test_they_are_small_and_described(name):
    folder = BUNDLED / name
    assert sum(file.stat().st_size for file in folder.iterdir()) <= MOST_BYTES
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in ("## Data", "## Limits", "CC BY-SA 4.0", "score on the test examples", "en (SHA-"):
        assert part in card
    assert json.loads((folder / "task.json").read_text())["bilm"]["name"] == "en"


@pytest.mark.parametrize("name", CLASSES)
def test_they_belong_to_the_bundled_model(name, elmo):
    """A new ``en`` needs new ones: python recipes/task_heads.py."""
    task = CLASSES[name].load(name, elmo=elmo)
    assert type(task) is CLASSES[name]
    assert task.labels


def test_entities(elmo):
    ner = NerTagger.load("ner", elmo=elmo)
    found = ner("Angela Merkel flew from Berlin to Paris and met the board of Siemens .")
    assert ner.show(found) == (
        "[Angela Merkel PER] flew from [Berlin LOC] to [Paris LOC] and met the board of "
        "[Siemens ORG] ."
    )


def test_parts_of_speech_depend_on_the_sentence(elmo):
    pos = PosTagger.load("pos", elmo=elmo)
    assert pos("They refuse to record the record .").tags == [
        "PRON", "VERB", "PART", "VERB", "DET", "NOUN", "PUNCT",
    ]  # fmt: skip


def test_roles(elmo):
    srl = RoleLabeller.load("srl", elmo=elmo)
    (frame,) = srl("The cat saw a mouse in the garden .").frames
    assert frame.predicate == 2
    assert frame.tags[:5] == ["B-ARG0", "I-ARG0", "B-V", "B-ARG1", "I-ARG1"]


def test_a_hundred_sentences_take_seconds(elmo):
    srl = RoleLabeller.load("srl", elmo=elmo)
    texts = [f"The teacher gave {n} students a book yesterday ." for n in range(100)]
    started = time.process_time()
    assert all(found.frames for found in srl.predict(texts))
    assert time.process_time() - started < 20


def test_a_folder_comes_before_a_bundled_name(elmo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ner").mkdir()
    (tmp_path / "ner" / "train.conll").touch()
    assert isinstance(load("ner", elmo=elmo), NerTagger)  # that folder is no model
    PosTagger.load("pos", elmo=elmo).save(tmp_path / "mine")
    (tmp_path / "ner" / "train.conll").unlink()
    (tmp_path / "ner").rmdir()
    (tmp_path / "mine").rename(tmp_path / "ner")
    assert isinstance(load("ner", elmo=elmo), PosTagger)


def test_examples_of_another_kind(elmo, tmp_path):
    """Tags of the wrong column are no score of 0."""
    (tmp_path / "other.conll").write_text("Anna\tNNP\nslept\tVBD\n")
    with pytest.raises(InputError, match=r"no label of .*other.conll \(NNP, VBD\) is one of the"):
        PosTagger.load("pos", elmo=elmo).evaluate(tmp_path / "other.conll")


def test_an_unknown_name():
    with pytest.raises(ModelNotFoundError, match=r"the name of a bundled model \(ner, pos, srl\)"):
        load("parsing")
    with pytest.raises(InputError, match="trained with another biLM"):
        load("ner", elmo=Elmo.load("zh", device="cpu"))
