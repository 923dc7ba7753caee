"""Saved task models."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import Elmo
from elmokit.errors import FormatError, InputError, ModelNotFoundError
from elmokit.tasks import NerTagger, PosTagger, TextClassifier, load
from elmokit.tasks.card import card as make_card
from elmokit.tasks.frozen_layers import FrozenLayers
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
    assert len({p.stat().st_mode for p in folder.iterdir() if p.is_file()}) == 1  # all can be read
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "B-LOC" in card
    assert "layer weights at input" in card
    values = json.loads((folder / "task.json").read_text())
    assert r"| a\|b, &lt;i&gt; c |" in make_card(values | {"labels": ["a|b", "<i>\nc"]}, "ner")
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


def test_a_tokenizer_function_must_be_given_again(tiny_folder, quick, tmp_path):
    def by_bars(text):
        return text.split("|")

    quick["training"]["epochs"] = 1
    elmo = Elmo.load(tiny_folder, tokenizer=by_bars, device="cpu")
    NerTagger.train(tagged(8), tagged(4, 1), elmo=elmo, settings=quick).save(tmp_path / "x")
    with pytest.raises(FormatError, match="the tokenizer function by_bars; pass elmo="):
        load(tmp_path / "x", device="cpu")
    assert load(tmp_path / "x", elmo=elmo)("Ann|went").words == ["Ann", "went"]


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
        ({"settings": 5}, r"task\.json is damaged.*: settings must be .*; copy it again"),
        (
            {"settings": {"model": {"hidden_dim": "x"}}},
            r"json is damaged.*: model\.hidden_dim",
        ),
        ({"labels": ["O", "X-Y"]}, r"task\.json is damaged.*: the label 'X-Y'"),
        (
            {"bilm": values["bilm"] | {"tokenizer": "x"}},
            r"json is damaged.*: there is no tok",
        ),
        ({"bilm": {"name": "xx", "sha256": ""}}, "trained with the biLM 'xx', which ElmoKit"),
        ({"bilm": values["bilm"] | {"sha256": "0"}}, "best/bilm is damaged, or another one"),
    ):
        (folder / "task.json").write_text(json.dumps(values | change))
        with pytest.raises(FormatError, match=message):
            load(folder, device="cpu")
    (folder / "task.json").write_text("{")
    with pytest.raises(FormatError, match="copy it again"):
        load(folder)
    (folder / "task.json").write_text(json.dumps(values))
    head = folder / "head.safetensors"
    head.write_bytes(head.read_bytes()[:-10])
    with pytest.raises(FormatError, match="not a complete task model"):
        load(folder, device="cpu")


@pytest.fixture
def wide(tiny):
    """A model with matrices that are large enough to be rounded."""
    settings = {"model": {"hidden_dim": 80}, "training": {"epochs": 3}}
    return NerTagger.train(tagged(60), tagged(9, 1), elmo=tiny, settings=settings)


def test_eight_bits(wide, tmp_path):
    """Large matrices have eight bits, the rest float16; predictions hardly change."""
    wide.save(tmp_path / "whole")
    wide.save(tmp_path / "small", dtype="int8")
    whole, small = (tmp_path / name / "head.safetensors" for name in ("whole", "small"))
    assert small.stat().st_size < 0.4 * whole.stat().st_size
    stored = load_file(small)
    assert {tensor.dtype for tensor in stored.values()} == {
        torch.int8, torch.float16, torch.float32,  # scales
    }  # fmt: skip
    again = NerTagger.load(tmp_path / "small", device="cpu")
    texts = [example.words for example in tagged(30, 2)]
    same = [a.tags == b.tags for a, b in zip(again(texts), wide(texts), strict=True)]
    assert sum(same) >= 27
    again.save(tmp_path / "twice", dtype="int8")  # what is rounded already does not change
    for name, tensor in load_file(tmp_path / "twice" / "head.safetensors").items():
        torch.testing.assert_close(tensor, stored[name], rtol=1e-6, atol=0)
    with pytest.raises(InputError, match="dtype must be float32 or int8"):
        wide.save(tmp_path / "other", dtype="int4")


def test_damaged_scales(wide, tmp_path):
    wide.save(tmp_path / "wide", dtype="int8")
    path = tmp_path / "wide" / "head.safetensors"
    tensors = load_file(path)
    scale = next(name for name in tensors if name.endswith(".scale"))
    tensors[scale] = tensors[scale][:-1].clone()
    save_file(tensors, path)
    with pytest.raises(FormatError, match="is not a complete task model"):
        NerTagger.load(tmp_path / "wide", device="cpu")


def test_trainings_share_layers(tiny, quick, monkeypatch):
    quick["training"]["epochs"] = 1
    quick["input"] = {"layers": "mix"}
    given = {"train": tagged(20), "dev": tagged(5, 1), "elmo": tiny, "settings": quick}
    alone = NerTagger.train(**given)
    with FrozenLayers(tiny, [0, 1, 2], 1 << 20) as layers:
        for _ in range(2):
            said = []
            shared = NerTagger.train(**given, layers=layers, say=said.append)
            for name, tensor in shared.network.state_dict().items():
                assert torch.equal(tensor, alone.network.state_dict()[name])
        assert not any("on disk" in line for line in said)  # nothing is computed twice
        scores = shared.evaluate(tagged(5, 2), layers=layers)
        assert scores == alone.evaluate(tagged(5, 2))
        monkeypatch.setattr(layers, "_computed", None)  # those of the test are there now, too
        assert shared.evaluate(tagged(5, 2), layers=layers) == scores
    with (
        pytest.raises(InputError, match="layers= must be FrozenLayers"),
        FrozenLayers(tiny, [0]) as other,
    ):
        NerTagger.train(**given, layers=other)
    with (
        pytest.raises(InputError, match="layers= must be FrozenLayers"),
        FrozenLayers(tiny, [0]) as other,
    ):
        alone.evaluate(tagged(5, 2), layers=other)


def test_layers_that_could_not_be_kept_are_not_used(tiny, quick, monkeypatch):
    quick["input"] = {"layers": "mix"}
    quick["training"]["epochs"] = 1
    given = {"train": tagged(20), "dev": tagged(5, 1), "elmo": tiny, "settings": quick}
    with FrozenLayers(tiny, [0, 1, 2], 1 << 20) as layers:
        monkeypatch.setattr("numpy.memmap", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            NerTagger.train(**given, layers=layers)
        monkeypatch.undo()
        NerTagger.train(**given, layers=layers)
