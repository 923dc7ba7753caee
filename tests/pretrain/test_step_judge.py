"""Steps that are skipped, and runs that fail."""

import math
import shutil

import pytest
import torch

from elmokit.errors import TrainingError
from elmokit.pretrain import trainer as train
from helpers.pretraining import recipe, reports, run


def test_steps_that_must_not_be_taken(text, tmp_path, monkeypatch):
    from elmokit.pretrain.objective.network import PretrainModel

    forward, calls = PretrainModel.forward, []

    def broken(self, *arguments):
        sums, states = forward(self, *arguments)
        if self.training:
            calls.append(1)
        bad = self.training and (len(calls) in (3, 4) or len(calls) > 12)
        return (sums * math.nan if bad else sums), states

    monkeypatch.setattr(PretrainModel, "forward", broken)
    with pytest.raises(TrainingError, match="10 steps in a row .*last good checkpoint"):
        run(text, tmp_path / "run", recipe(training={"epochs": 2, "save_every": 0.0}))
    state = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    assert all(t.isfinite().all() for t in state["model"].values())


def test_gradients_that_jump(text, tmp_path, monkeypatch):
    """A step with a far larger gradient than before is skipped; clipping would not help Muon."""
    clip, norms, weights_before = train.clip_gradients, [], {}

    def jumping(model, max_norm):
        norm = clip(model, max_norm)
        norms.append(norm)
        if len(norms) == 12:
            weights_before.update({k: v.clone() for k, v in model.state_dict().items()})
        if len(norms) == 13:  # the step before was left out
            assert all(torch.equal(v, weights_before[k]) for k, v in model.state_dict().items())
        return norm * (1000 if len(norms) in (12, 20) else 1)

    monkeypatch.setattr(train, "clip_gradients", jumping)
    run(text, tmp_path / "run", recipe(training={"epochs": 2}))
    assert len(norms) > 20
    assert sum(r["skipped"] for r in reports(tmp_path / "run") if r["kind"] == "training") == 2

    def growing(model, max_norm):  # by a fifth with every step, from the tenth on
        norms.append(clip(model, max_norm))
        return norms[-1] * 1.2 ** max(0, len(norms) - 10)

    norms.clear()
    monkeypatch.setattr(train, "clip_gradients", growing)
    with pytest.raises(TrainingError, match="10 steps in a row .* 100 times as large"):
        run(text, tmp_path / "slowly", recipe(training={"epochs": 9}))
    norms.clear()

    def exploding(model, max_norm):
        norms.append(clip(model, max_norm))
        return norms[-1] * (1 if len(norms) < 10 else 1000)

    monkeypatch.setattr(train, "clip_gradients", exploding)
    with pytest.raises(TrainingError, match="10 steps in a row .* 100 times as large"):
        run(text, tmp_path / "other", recipe(training={"epochs": 2}))


def test_what_is_usual_is_remembered(text, tmp_path, monkeypatch):
    """The first step after resuming is judged by earlier ones, unless the rate has changed."""
    clip = train.clip_gradients
    settings = recipe(training={"epochs": 1})
    run(text, tmp_path / "run", settings)
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    norms = []

    def jumping(model, max_norm):
        norms.append(clip(model, max_norm))
        return norms[-1] * (1000 if len(norms) == 1 else 1)

    monkeypatch.setattr(train, "clip_gradients", jumping)
    for name, rate, skipped in (("run", 0.02, 1), ("other", 0.01, 0)):
        norms.clear()
        longer = {"training": {"epochs": 1.2}, "optimizer": {"learning_rate": rate}}
        before = len(reports(tmp_path / name)) - 1  # the end is evaluated again
        run(text, tmp_path / name, settings.changed(longer), resume=True)
        new = reports(tmp_path / name)[before:]
        assert sum(r["skipped"] for r in new if r["kind"] == "training") == skipped
