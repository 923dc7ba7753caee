"""Runs that were stopped, killed or broken, and runs of several processes."""

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder, Start
from elmokit.pretrain.trainer import TrainingError
from helpers.pretraining import (
    COMMAND,
    SMALL,
    arguments,
    in_two_processes,
    recipe,
    reports,
    run,
    same_weights,
    weights,
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


def wait_for(what, process):
    """Until something is there that a process makes, on a busy machine too."""
    deadline = time.monotonic() + 120
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def one_thread():
    """As processes started with OMP_NUM_THREADS=1 have; sums of several have other last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {**os.environ, "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(before)


def test_killed_and_resumed(text, tmp_path, one_thread):
    """Killed at any moment: what comes out is what an uninterrupted run gives."""
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


def test_interrupted(text, tmp_path, one_thread):
    """Ctrl-C saves and leaves."""
    settings = json.loads(json.dumps(SMALL))
    settings["training"] |= {"epochs": 1000, "evaluate_every": 0.0001, "save_every": 100.0}
    out = tmp_path / "run"
    process = subprocess.Popen(
        [*COMMAND[:3], *arguments(text, settings, out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=one_thread,
    )
    wait_for((out / "metrics.jsonl").exists, process)  # the first evaluation, in the loop
    process.send_signal(signal.SIGINT)
    said, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert "stopped and saved" in said
    state = torch.load(out / "last.pt", weights_only=True)
    assert state["progress"]["step"] == reports(out)[-1]["step"]


def alike(a, b):
    """Whether two runs gave the same but for the order of sums."""
    for x, y in zip(weights(a).values(), weights(b).values(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=2e-4)
    means = [
        [(r["step"], r["mean"]) for r in reports(out) if r["kind"] == "evaluation"]
        for out in (a, b)
    ]
    assert len(means[0]) > 10
    np.testing.assert_allclose(*means, rtol=1e-3)


SEVERAL = {"epochs": 1, "dropout": 0.0, "recased": 0.3}


def test_several_processes_train_alike(text, tmp_path):
    """Two processes with half a batch each do what one does with the whole."""
    settings = SMALL | {"training": SEVERAL, "softmax": {"kind": "sampled", "samples": 12}}
    run(text, tmp_path / "one", Recipe.from_dict(settings))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*launcher, "--nproc-per-node", "2", "-m", "elmokit",
         *arguments(text, settings, tmp_path / "two")],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the model is") == 1
    assert "stopped" not in done.stdout
    alike(tmp_path / "one", tmp_path / "two")


def test_several_processes_with_rare_words_and_streams(text, tmp_path):
    with text[0][0].open("a") as file:  # a cluster of words that few batches have
        file.write("the xylophone sees the zither .\n")
    rare = SMALL | {"training": SEVERAL, "softmax": {"kind": "adaptive", "cutoffs": [26]}}
    stream = SMALL | {"training": SEVERAL, "batch": {"order": "stream", "tokens": 160, "steps": 8}}
    run(text, tmp_path / "rare-one", Recipe.from_dict(rare))
    run(text, tmp_path / "stream-one", Recipe.from_dict(stream))
    in_two_processes(
        arguments(text, rare, tmp_path / "rare-two"),
        arguments(text, stream, tmp_path / "stream-two"),
    )
    alike(tmp_path / "rare-one", tmp_path / "rare-two")
    alike(tmp_path / "stream-one", tmp_path / "stream-two")


def test_several_processes_resume(text, tmp_path):
    """Carried states and random numbers of every process are in the one checkpoint."""
    settings = json.loads(json.dumps(SMALL))
    settings["batch"] = {"order": "stream", "tokens": 160, "steps": 8}
    settings["optimizer"] |= {"schedule": "constant", "warmup": 0}
    settings["training"] |= {"epochs": 0.5}
    parts = arguments(text, settings, tmp_path / "parts")
    whole = arguments(text, settings, tmp_path / "whole", "--epochs", 1.0)
    in_two_processes(parts, [*parts, "--resume", "--epochs", 1.0], whole)
    state = torch.load(tmp_path / "parts" / "last.pt", weights_only=True)
    first, second = state["processes"]
    assert not torch.equal(first["states"][0][0], second["states"][0][0])
    assert not torch.equal(first["rng"], second["rng"])
    assert [p.name for p in (tmp_path / "parts").glob("*.pt*")] == ["last.pt"]
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    with pytest.raises(InputError, match="number of processes was 2 .* is 1 now; start as many"):
        run(text, tmp_path / "parts", None, resume=True)


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
    with pytest.raises(TrainingError, match="10 times in a row.*last good checkpoint"):
        run(text, tmp_path / "run", recipe(training={"epochs": 2, "save_every": 0.0}))
    state = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    assert all(t.isfinite().all() for t in state["model"].values())


def test_gradients_that_jump(text, tmp_path, monkeypatch):
    """A step whose gradient is far larger than before is left out, as clipping stops no Muon."""
    from elmokit.pretrain import trainer as train

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
    with pytest.raises(TrainingError, match="100 times as large .* 10 times in a row"):
        run(text, tmp_path / "slowly", recipe(training={"epochs": 9}))
    norms.clear()

    def exploding(model, max_norm):
        norms.append(clip(model, max_norm))
        return norms[-1] * (1 if len(norms) < 10 else 1000)

    monkeypatch.setattr(train, "clip_gradients", exploding)
    with pytest.raises(TrainingError, match="100 times as large .* 10 times in a row"):
        run(text, tmp_path / "other", recipe(training={"epochs": 2}))


def test_what_is_usual_is_remembered(text, tmp_path, monkeypatch):
    """The first step after resuming is judged by those before; with another rate, by none."""
    from elmokit.pretrain import trainer as train

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
        before = len(reports(tmp_path / name))
        run(text, tmp_path / name, settings.changed(longer), resume=True)
        new = reports(tmp_path / name)[before:]
        assert sum(r["skipped"] for r in new if r["kind"] == "training") == skipped


def learning_rates(out):
    return [r["learning_rate"] for r in reports(out) if r["kind"] == "training"]


def test_resuming_with_a_lower_rate(cli, text, tmp_path, monkeypatch):
    """What the error advises is what works."""
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
    advice = failed.stderr.strip().rpartition(", as ")[2].split()
    assert advice == ["--set", "optimizer.learning_rate=0.005"]
    again = cli(*command, "--resume", *advice)
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
    assert "--epochs or --minutes, not both" in both.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--size", "medium"], "model.context.cell_dim=2048 instead of 48"),
        (["--set", "model.context.n_layers=3"], "model.context.n_layers=3 instead of 2"),
        (["--set", "model.encoder=words"], "encoder=words instead of char_cnn"),
        (["--set", "batch.tokens=300"], "batch.tokens=300 instead of 200"),
        (["--set", "softmax.kind=adaptive"], "softmax.kind=adaptive instead of full"),
        (["--tokenizer", "characters"], "text.tokenizer=characters instead of whitespace"),
        (["--vocabulary-size", "9"], "text.vocabulary_size=9 instead of 100000"),
        (["--seed", "1"], "training.seed=1 instead of 0"),
        (["--set", "optimizer.name=adagrad"], "optimizer.name=adagrad instead of muon"),
        (["--init-from", "here/model"], "--init-from=.*/here/model instead of None"),
        (["--vocabulary", "words.txt"], "--vocabulary=.*/words.txt instead of None"),
        (["--new-vocabulary"], "--new-vocabulary=True instead of False"),
    ],
)
def test_resuming_with_settings_that_cannot_change(cli, text, tmp_path, flags, message):
    folder = RunFolder(tmp_path / "run")
    whitespace = recipe(text={"tokenizer": "whitespace"})
    folder.begin(whitespace, Start())  # nothing is saved yet, but no more is needed to refuse
    command = ["pretrain", text[0][0], "--valid", text[1][0], "--out", folder.path, "--resume"]
    done = cli(*command, *flags)
    assert done.returncode == 2
    assert re.search(f"--resume cannot go on with .*{message}.*; leave it out", done.stderr)
    assert folder.recipe() == whitespace


def test_resuming_a_run_that_went_on_with_a_model(text, tmp_path):
    """All it needs is in its folder."""
    run(text, tmp_path / "first", recipe(training={"epochs": 0.5}))
    model = tmp_path / "first" / "best"
    larger = recipe(model={"context": {"cell_dim": 64, "projection_dim": 16}})  # does not count
    settings = replace(larger, training=replace(larger.training, epochs=0.5))
    run(text, tmp_path / "run", settings, init_from=str(model))
    with pytest.raises(InputError, match="--init-from=.*first instead of .*best"):
        run(text, tmp_path / "run", None, resume=True, init_from=str(tmp_path / "first"))
    shutil.rmtree(tmp_path / "first")
    longer = replace(settings, training=replace(settings.training, epochs=1.0))
    done = run(text, tmp_path / "run", longer, resume=True, init_from=str(model))
    assert run(text, tmp_path / "run", None, resume=True) == done
    assert Elmo.load(tmp_path / "run" / "best", device="cpu").config.context.cell_dim == 48
