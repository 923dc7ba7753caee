"""Training in two processes continues by itself after one of them is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.pretraining import SMALL, arguments, same_weights, wait_for


def launch(*command):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node", "2", "--max-restarts", "3", "-m", "elmokit"]
    return subprocess.Popen(
        [*launcher, *map(str, command)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ranks(launcher):
    """The training processes of a launcher, by rank."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"PPid:\t{launcher.pid}\n" in path.read_text():
                variables = (path.parent / "environ").read_bytes().split(b"\0")
                rank = next(v for v in variables if v.startswith(b"RANK="))
                found[int(rank[5:])] = int(path.parent.name)
        except (OSError, StopIteration):
            continue
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to find a rank's process")
def test_a_killed_rank_is_restarted_from_the_checkpoint(text, tmp_path):
    # save_every is in minutes: after every step
    settings = SMALL | {"training": {"epochs": 6, "dropout": 0.1, "save_every": 0}}
    whole = launch(*arguments(text, settings, tmp_path / "whole"))
    _, errors = whole.communicate(timeout=240)
    assert whole.returncode == 0, errors
    process = launch(*arguments(text, settings, tmp_path / "killed"))
    try:
        wait_for((tmp_path / "killed" / "last.pt").exists, process)
        os.kill(ranks(process)[1], signal.SIGKILL)
        printed, errors = process.communicate(timeout=240)
    finally:
        left = ranks(process)
        process.kill()
        for pid in left.values():  # the launcher cannot end them any more
            os.kill(pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    assert "resuming at step" in printed
    assert same_weights(tmp_path / "whole", tmp_path / "killed")
