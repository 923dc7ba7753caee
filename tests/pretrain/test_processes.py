"""Training in several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from elmokit.errors import InputError
from elmokit.pretrain.recipe import Recipe
from helpers.pretraining import (
    SMALL,
    arguments,
    in_two_processes,
    reports,
    run,
    same_weights,
    weights,
)


def alike(a, b):
    """Check that two runs gave the same results, up to the order of sums."""
    for x, y in zip(weights(a).values(), weights(b).values(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=2e-4)
    means = [
        [(r["step"], r["mean"]) for r in reports(out) if r["kind"] == "evaluation"]
        for out in (a, b)
    ]
    assert len(means[0]) > 3
    np.testing.assert_allclose(*means, rtol=1e-3)


SEVERAL = {"epochs": 2, "dropout": 0.0, "recased": 0.3}


def test_several_processes_train_alike(text, tmp_path):
    """Two processes with half a batch each train like one with the whole batch."""
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


ENDS = """
import sys
from pathlib import Path

import torch
from torch import nn

from elmokit.pretrain.processes import joined


def threads():
    return {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}


with joined("cpu"):
    runs = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    runs(torch.ones(1, 2)).sum().backward()
    assert any("gloo" in name for name in threads()), threads()
    del runs
sys.exit(any("gloo" in name for name in threads()))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of threads")
def test_no_thread_outlives_the_process_group(tmp_path):
    """A thread of gloo that frees a tensor while Python ends would abort the process."""
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*launcher, "--nproc-per-node", "2", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


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
    """One checkpoint has the carried states and random numbers of every process."""
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
    with pytest.raises(InputError, match="with 2 processes and cannot resume with 1"):
        run(text, tmp_path / "parts", None, resume=True)
