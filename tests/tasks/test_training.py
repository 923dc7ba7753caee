"""Training: it learns, stops, resumes and repeats."""

import json
import signal
from dataclasses import replace

import pytest
import torch

from elmokit.errors import FormatError, InputError, OutputError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.tasks import NerTagger, RelationClassifier, TextClassifier, saved
from elmokit.tasks.readers.examples import TaggedExample, TextExample
from elmokit.tasks.readers.relations import parse_marked
from helpers.progress_bars import record_progress
from helpers.task_data import reviews, tagged

TRAIN, DEV = tagged(40), tagged(15, seed=1)


def weights(task):
    return {name: tensor.clone() for name, tensor in task.network.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_it_learns(tiny, quick):
    said = []
    ner = NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, say=said.append)
    assert ner.evaluate(DEV).value > 95
    assert said[0].startswith("ELMo's layers of ")
    assert said[-1].startswith("dev f1 ")
    (found,) = ner([["Ann", "went", "to", "Rome", "."]])
    assert found.tags == ["B-PER", "O", "O", "B-LOC", "O"]


def test_progress(tiny, quick, monkeypatch):
    bars = record_progress(monkeypatch, "elmokit.tasks.task_trainer", "elmokit.tasks.task")
    quick["training"] |= {"epochs": 2, "batch_size": 16}
    ner = NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick)
    for number in (1, 2):
        (epoch, n_train, steps), dev = bars[2 * number - 2 : 2 * number]
        assert (epoch, n_train, sorted(steps)) == (f"epoch {number}", 40, [8, 16, 16])
        assert dev == ("predicting", 15, [15])
    ner.predict(["Ann slept ."], progress=False)
    assert len(bars) == 4
    ner.evaluate(DEV)
    assert len(bars) == 5


def test_the_same_seed_gives_the_same_model(tiny, quick, one_thread):
    quick["training"]["epochs"] = 2
    one, again = (NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick) for _ in range(2))
    assert same(weights(one), weights(again))
    quick["training"]["seed"] = 1
    assert not same(weights(one), weights(NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick)))


def test_predictions_do_not_depend_on_the_batch(tiny, quick):
    quick["training"]["epochs"] = 2
    texts = [e.words for e in tagged(30, seed=3)]
    ner = NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick)
    assert ner.predict(texts, 1) == ner.predict(texts, 7) == ner.predict(texts)
    classifier = TextClassifier.train(reviews(20), reviews(8, 1), elmo=tiny, settings=quick)
    found = [classifier.predict([e.text for e in reviews(12, 5)], n) for n in (1, 5)]
    for one, other in zip(*found, strict=True):
        assert one.label == other.label
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-3)


@pytest.mark.parametrize(("tuned", "cache_gb"), [(False, 8.0), (False, 0.0), (True, 8.0)])
def test_a_stopped_training_continues(
    tiny, quick, tmp_path, monkeypatch, one_thread, tuned, cache_gb
):
    """Stopped in the third epoch and resumed, it gives the model of an uninterrupted one."""
    quick["training"] |= {"epochs": 4, "cache_gb": cache_gb}
    quick["tuning"] = {"enabled": tuned, "learning_rate": 0.001}
    whole = NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=tmp_path / "whole")

    steps = 0
    loss = NerTagger.loss

    def stop_later(*arguments):
        nonlocal steps
        steps += 1
        if steps == 25:  # ten steps per epoch
            signal.raise_signal(signal.SIGINT)
        return loss(*arguments)

    monkeypatch.setattr(NerTagger, "loss", stop_later)
    said = []
    out = tmp_path / "part"
    with pytest.raises(KeyboardInterrupt):
        NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out, say=said.append)
    assert "so far; continue with resume=True" in said[-1]
    stopped = NerTagger.load(out, device="cpu")  # the best so far
    assert stopped.evaluate(DEV).value == pytest.approx(stopped.about["dev"]["value"])
    resumed = NerTagger.train(
        TRAIN, DEV, elmo=tiny, settings=quick, out=out, resume=True, say=said.append
    )
    assert "resuming after epoch 2" in said
    assert same(weights(whole), weights(resumed))


@pytest.mark.parametrize(("tuned", "n"), [(False, 1), (True, 3)])
def test_the_checksum_of_a_frozen_bilm_is_computed_once(
    tiny, quick, tmp_path, monkeypatch, tuned, n
):
    """That of a large biLM takes a while, and every best epoch saves the model."""
    computed, values = [], iter((10.0, 20.0))
    checksum, score = Checkpoint.checksum, NerTagger.score
    monkeypatch.setattr(Checkpoint, "checksum", lambda self: computed.append(1) or checksum(self))
    monkeypatch.setattr(NerTagger, "score", lambda *a: replace(score(*a), value=next(values)))
    monkeypatch.setattr(saved.native, "write", lambda *_: None)  # its card has a checksum too
    quick["training"]["epochs"] = 2
    quick["tuning"] = {"enabled": tuned}
    NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=tmp_path / "out")
    assert len(computed) == n


def test_early_stopping(tiny, quick):
    said = []
    quick["training"] |= {"epochs": 50, "patience": 2}
    NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, say=said.append)
    assert "no better score for 2 epochs" in said


def test_tuning_leaves_the_given_model_alone(tiny, quick):
    before = {k: v.clone() for k, v in tiny.bilm.state_dict().items()}
    quick["training"]["epochs"] = 2
    quick["tuning"] = {"enabled": True, "gradual": False, "learning_rate": 0.01}
    ner = NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick)
    assert same(before, tiny.bilm.state_dict())
    assert not same(before, ner.elmo.bilm.state_dict())
    assert not any(p.requires_grad for p in ner.elmo.bilm.parameters())


def test_layers_join_one_by_one(tiny, quick, monkeypatch):
    """Gradual unfreezing: after one epoch only the top layer has changed."""
    before = {k: v.clone() for k, v in tiny.bilm.state_dict().items()}
    quick["training"]["epochs"] = 1
    quick["tuning"] = {"enabled": True, "learning_rate": 0.01}
    ner = NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick)
    after = ner.elmo.bilm.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith(("forward_layers.1.", "backward_layers.1.")) for name in changed)


def test_what_cannot_be_resumed(tiny, quick, tmp_path):
    quick["training"]["epochs"] = 1
    out = tmp_path / "out"
    with pytest.raises(InputError, match="no training to resume"):
        NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out, resume=True)
    NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out)
    with pytest.raises(OutputError, match="not empty"):
        NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out)
    with pytest.raises(InputError, match="other examples or settings"):
        NerTagger.train(TRAIN[1:], DEV, elmo=tiny, settings=quick, out=out, resume=True)
    (out / "checkpoint.pt").write_bytes(b"damaged")
    with pytest.raises(FormatError, match="is damaged"):
        NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out, resume=True)
    assert json.loads((out / "best" / "task.json").read_text())["task"] == "ner"


def test_leftovers_of_killed_processes_are_removed(tiny, quick, tmp_path):
    quick["training"]["epochs"] = 1
    out = tmp_path / "out"
    NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out)
    before = {path.name for path in out.iterdir()}
    for name in (".best.1a2b3c4d.tmp", "elmokit-1a2b"):
        (out / name).mkdir()
        (out / name / "file").write_text("half")
    NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick, out=out, resume=True)
    assert {path.name for path in out.iterdir()} == before


def test_the_given_model_stays_as_it_is(tiny, quick):
    quick["training"]["epochs"] = 1
    tiny.bilm.requires_grad_()
    NerTagger.train(TRAIN, DEV, elmo=tiny, settings=quick)
    assert all(p.requires_grad for p in tiny.bilm.parameters())


def test_tags_without_types(tiny, quick):
    """Word segmentation has tags such as B, M, E and S alone."""
    words = [TaggedExample(["a", "b", "c"], ["B", "I", "O"])] * 8
    ner = NerTagger.train(words, words, elmo=tiny, settings=quick)
    assert ner.labels == ["O", "B", "I"]
    assert ner.evaluate(words).value == 100


def test_bad_data(tiny, quick):
    with pytest.raises(InputError, match="the label of example 1 of train must be a string"):
        TextClassifier.train([TextExample("a", 1)], reviews(2), elmo=tiny, settings=quick)
    with pytest.raises(InputError, match="dev has no examples"):
        NerTagger.train(TRAIN, [], elmo=tiny, settings=quick)
    with pytest.raises(InputError, match="1 label; expected two or more"):
        TextClassifier.train(reviews(1), reviews(1), elmo=tiny, settings=quick)
    relation = parse_marked("A <e1>cat</e1> saw a <e2>dog</e2>.", "Other")
    with pytest.raises(InputError, match="1 label; expected two or more"):
        RelationClassifier.train([relation], [relation], elmo=tiny, settings=quick)
