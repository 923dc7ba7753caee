"""Runs that were stopped or killed, and what may change when they resume."""

import json
import math
import random
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace

import pytest
import torch

from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.paths import Start
from helpers.pretraining import (
    COMMAND,
    SMALL,
    arguments,
    recipe,
    reports,
    run,
    same_weights,
    wait_for,
)


@pytest.mark.parametrize(
    ("order", "optimizer"), [("sentences", "muon"), ("stream", "muon"), ("sentences", "adamw")]
)
def test_resuming_gives_the_same_bits(text, tmp_path, order, optimizer, monkeypatch):
    settings = recipe(
        batch={"order": order, "steps": 8},
        optimizer={"name": optimizer},
        training={"epochs": 2, "save_every": 0.0},
    )
    run(text, tmp_path / "whole", settings)
    from elmokit.pretrain.trainer import Trainer

    step, n = Trainer._step, []

    def stop_sometimes(self, *arguments):
        n.append(1)
        if len(n) in (7, 20):
            self.stop()
        return step(self, *arguments)

    monkeypatch.setattr(Trainer, "_step", stop_sometimes)
    assert run(text, tmp_path / "parts", settings) is None
    assert run(text, tmp_path / "parts", settings, resume=True) is None
    assert run(text, tmp_path / "parts", settings, resume=True) is not None
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    a, b = (
        [r["mean"] for r in reports(tmp_path / name) if r["kind"] == "evaluation"]
        for name in ("whole", "parts")
    )
    assert a == b


def test_killed_and_resumed(text, tmp_path, one_thread):
    """A run killed at any moment resumes to the weights of an uninterrupted run."""
    settings = json.loads(json.dumps(SMALL))
    settings["optimizer"] |= {"schedule": "constant", "warmup": 0}  # however long the run
    settings["training"] |= {"epochs": 10_000, "save_every": 0.0, "recased": 0.2}
    out = tmp_path / "killed"
    command = [*COMMAND[:3], *arguments(text, settings, out)]
    process = subprocess.Popen(command, env=one_thread, stdout=subprocess.DEVNULL)
    wait_for((out / "last.pt").exists, process)
    time.sleep(random.random() * 0.5)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    state = torch.load(out / "last.pt", weights_only=True)["progress"]
    assert state["step"] > 0
    settings["training"] |= {"epochs": state["epoch"] + 1.5}
    run(text, out, Recipe.from_dict(settings), resume=True)
    run(text, tmp_path / "whole", Recipe.from_dict(settings))
    assert same_weights(tmp_path / "whole", out)


def learning_rates(out):
    return [r["learning_rate"] for r in reports(out) if r["kind"] == "training"]


def test_resuming_with_a_lower_rate(cli, text, tmp_path, monkeypatch):
    """The advice in the error works."""
    from elmokit.pretrain.objective.network import PretrainModel

    forward, calls = PretrainModel.forward, []

    def broken(self, *arguments):
        sums, states = forward(self, *arguments)
        calls.append(self.training)
        return (sums * math.nan if sum(calls) > 5 else sums), states

    settings = json.loads(json.dumps(SMALL))
    settings["optimizer"] |= {"schedule": "constant"}
    command = ["pretrain", *arguments(text, settings, tmp_path / "run")[1:]]
    monkeypatch.setattr(PretrainModel, "forward", broken)
    failed = cli(*command, "--set", "training.save_every=0")
    monkeypatch.undo()
    assert failed.returncode == 2
    assert "pass --resume to continue" in failed.stderr
    advice = failed.stderr.split()[-1]
    assert advice == "optimizer.learning_rate=0.005"
    again = cli(*command, "--resume", "--set", advice)
    assert again.returncode == 0, again.stderr
    assert learning_rates(tmp_path / "run")[-1] == pytest.approx(0.005)
    stored = RunFolder(tmp_path / "run").recipe()
    assert stored.optimizer.learning_rate == 0.005
    assert stored.training.save_every == 0  # which was not given again
    assert not list((tmp_path / "run").glob("*.new"))


def test_resuming_with_other_settings(cli, text, tmp_path):
    out = tmp_path / "run"
    run(text, out, recipe(training={"epochs": 0.5}, optimizer={"schedule": "constant"}))
    kept = ["pretrain", text[0][0], "--valid", text[1][0], "--out", out, "--device", "cpu"]
    settings = ["optimizer.weight_decay=0.5", "optimizer.momentum=0.8"]
    settings += ["optimizer.betas=[0.8, 0.9]", "training.dropout=0"]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    done = cli(*kept, "--resume", "--epochs", 1, *flags)
    assert done.returncode == 0, done.stderr
    stored = RunFolder(out).recipe()
    assert (stored.training.epochs, stored.training.dropout) == (1, 0)
    state = torch.load(out / "last.pt", weights_only=True)
    muon, adamw = (one["param_groups"] for one in state["optimizers"])
    assert [g["weight_decay"] for g in muon] == [0.5]
    assert [g["momentum"] for g in muon] == [0.8]
    assert [g["weight_decay"] for g in adamw] == [0.5, 0]
    assert [tuple(g["betas"]) for g in adamw] == [(0.8, 0.9)] * 2
    assert state["progress"]["batch"] == state["progress"]["step"] > 10
    assert cli(*kept, "--resume", "--minutes", 0.0001).returncode == 0
    assert RunFolder(out).recipe().training.minutes == 0.0001
    assert cli(*kept, "--resume", "--epochs", 1).returncode == 0
    assert RunFolder(out).recipe().training.minutes is None
    both = cli(*kept, "--resume", "--epochs", 1, "--minutes", 1)
    assert both.returncode == 2
    assert "--epochs and --minutes cannot be combined" in both.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--size", "medium"], "model.context.cell_dim=2048 instead of 48"),
        (["--set", "model.context.n_layers=3"], "model.context.n_layers=3 instead of 2"),
        (["--set", "model.encoder=words"], "encoder=words instead of char_cnn"),
        (["--set", "batch.tokens=300"], "batch.tokens=300 instead of 200"),
        (["--set", "softmax.kind=adaptive"], "softmax.kind=adaptive instead of full"),
        (["--tokenizer", "characters"], "--tokenizer characters instead of whitespace"),
        (["--vocabulary-size", "9"], "--vocabulary-size 9 instead of 100000"),
        (["--seed", "1"], "--seed 1 instead of 0"),
        (["--set", "optimizer.name=adagrad"], "optimizer.name=adagrad instead of muon"),
        (["--init-from", "here/model"], "--init-from .*/here/model instead of None"),
        (["--vocabulary", "words.txt"], "--vocabulary .*/words.txt instead of None"),
        (["--new-vocabulary"], "--new-vocabulary instead of False"),
    ],
)
def test_resuming_with_settings_that_cannot_change(cli, text, tmp_path, flags, message):
    folder = RunFolder(tmp_path / "run")
    whitespace = recipe(text={"tokenizer": "whitespace"})
    folder.begin(whitespace, Start())  # nothing is saved yet, but no more is needed to refuse
    command = ["pretrain", text[0][0], "--valid", text[1][0], "--out", folder.path, "--resume"]
    done = cli(*command, *flags)
    assert done.returncode == 2
    assert re.search(f"a resumed run cannot use .*{message}.*; leave it out", done.stderr)
    assert folder.recipe() == whitespace


def test_runs_of_older_versions(text, tmp_path):
    """They store new_vocabulary next to the model they started from."""
    folder = RunFolder(tmp_path / "run")
    folder.begin(recipe(), Start("en"))
    path = folder.path / "recipe.json"
    values = json.loads(path.read_text())
    del values["text"]["new_vocabulary"]
    values["start"]["new_vocabulary"] = True
    path.write_text(json.dumps(values))
    assert folder.recipe().text.new_vocabulary
    assert folder.start() == Start("en")


def test_resuming_a_run_that_went_on_with_a_model(text, tmp_path):
    """The run folder has everything that resuming needs."""
    run(text, tmp_path / "first", recipe(training={"epochs": 0.5}))
    model = tmp_path / "first" / "best"
    larger = recipe(model={"context": {"cell_dim": 64, "projection_dim": 16}})  # does not count
    settings = replace(larger, training=replace(larger.training, epochs=0.5))
    run(text, tmp_path / "run", settings, init_from=str(model))
    with pytest.raises(InputError, match="init_from=.*first instead of .*best"):
        run(text, tmp_path / "run", None, resume=True, init_from=str(tmp_path / "first"))
    shutil.rmtree(tmp_path / "first")
    longer = replace(settings, training=replace(settings.training, epochs=1.0))
    done = run(text, tmp_path / "run", longer, resume=True, init_from=str(model))
    assert run(text, tmp_path / "run", None, resume=True) == done
    assert Elmo.load(tmp_path / "run" / "best", device="cpu").config.context.cell_dim == 48
