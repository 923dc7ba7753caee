"""Runs that diverge, and runs that start from a model and do not improve it."""

import json

import pytest
import torch

from elmokit.errors import TrainingError
from elmokit.formats import read_model
from elmokit.pretrain import trainer as train
from elmokit.pretrain import validation
from helpers.pretraining import NOUNS, PLACES, SMALL, arguments, recipe, reports, run, sentences


def broken_from(step, factor):
    """A step of training that spoils the weights from some step on."""
    real = train.Trainer._step

    def broken(self, *arguments):
        found = real(self, *arguments)
        if self.progress.step >= step:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.mul_(factor)
        return found

    return broken


def same_model(a, b):
    a, b = read_model(str(a)).tensors, read_model(str(b)).tensors
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_that_diverges_at_once(cli, text, tmp_path):
    """It may be too short for ten bad steps in a row."""
    out = tmp_path / "run"
    command = ["pretrain", *arguments(text, SMALL, out)[1:], "--epochs", 0.1]
    done = cli(*command, "--set", "optimizer.learning_rate=1e30")
    assert done.returncode == 2
    assert "training failed: the validation perplexity is" in done.stderr
    assert "start the run again with a lower learning rate" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (out / "best").exists()
    assert not (out / "last.pt").exists()
    assert cli(*command).returncode == 0  # in the same folder


@pytest.mark.parametrize("factor", [1e4, float("nan")])
def test_a_good_model_stays(text, tmp_path, monkeypatch, factor):
    out = tmp_path / "run"
    settings = recipe(training={"epochs": 1, "evaluate_every": 0.5})
    monkeypatch.setattr(train.Trainer, "_step", broken_from(18, factor))
    with pytest.raises(TrainingError, match=r"training failed.*resume=True.*best is the model of"):
        run(text, out, settings)
    monkeypatch.undo()
    good = next(r for r in reports(out) if r["kind"] == "evaluation")
    assert read_model(str(out / "best")).check()
    state = torch.load(out / "last.pt", weights_only=True)
    assert state["progress"]["best_step"] == good["step"] < 18
    assert run(text, out, None, resume=True) is not None  # from the last good checkpoint


def test_overfitting_is_no_failure(text, tmp_path, monkeypatch):
    """Few words and many epochs: the end is worse than guessing, and the best model is kept."""
    monkeypatch.setattr(validation, "_FAR_ABOVE", 1.0)
    text[0][0].write_text("\n".join(sentences(25) * 20))
    text[1][0].write_text("\n".join(f"the {b} likes the {a} ." for a in NOUNS for b in PLACES))
    said, out = [], tmp_path / "run"
    settings = recipe(training={"epochs": 4})
    found = run(text, out, settings, say=said.append)
    evaluations = [r for r in reports(out) if r["kind"] == "evaluation" and not r["whole"]]
    assert found.mean < 26 < evaluations[-1]["mean"]
    assert "of step" in said[-1]


@pytest.fixture
def model(text, tmp_path):
    run(text, tmp_path / "first", recipe(training={"epochs": 1}))
    return tmp_path / "first" / "best"


def test_the_start_competes(text, tmp_path, model):
    """A run that makes the model worse keeps it."""
    said, out = [], tmp_path / "run"
    settings = recipe(training={"epochs": 0.2}, optimizer={"learning_rate": 0.3})
    found = run(text, out, settings, say=said.append, init_from=str(model))
    evaluations = [r for r in reports(out) if r["kind"] == "evaluation"]
    assert evaluations[0]["step"] == 0
    assert evaluations[0]["mean"] == pytest.approx(found.mean)
    assert evaluations[1]["mean"] > found.mean
    assert any(line.startswith("step 0: perplexity") for line in said)
    assert "unchanged: no evaluation was better than the start" in said[-1]
    assert same_model(out / "best", model)
    again = run(text, out, None, resume=True)
    assert again == found


def test_a_better_model_replaces_the_start(text, tmp_path, model):
    said, out = [], tmp_path / "run"
    found = run(text, out, recipe(training={"epochs": 2}), say=said.append, init_from=str(model))
    first = reports(out)[0]
    assert first["step"] == 0
    assert found.mean < first["mean"]
    assert not same_model(out / "best", model)
    assert "unchanged" not in said[-1]


def test_a_run_that_fails_keeps_its_start(text, tmp_path, monkeypatch, model):
    monkeypatch.setattr(train.Trainer, "_step", broken_from(1, float("nan")))
    with pytest.raises(TrainingError, match="best is the model that the run started from"):
        run(text, tmp_path / "run", recipe(training={"epochs": 0.2}), init_from=str(model))
    assert same_model(tmp_path / "run" / "best", model)


def test_a_start_with_nan(text, tmp_path, model):
    from safetensors.torch import load_file, save_file

    from elmokit.errors import FormatError

    tensors = load_file(model / "model.safetensors")
    tensors["softmax.bias"][3] = float("nan")
    save_file(tensors, model / "model.safetensors")
    with pytest.raises(FormatError, match="NaN"):
        run(text, tmp_path / "run", recipe(), init_from=str(model))
    assert not (tmp_path / "run").exists()
    assert json.loads((model / "config.json").read_text())
