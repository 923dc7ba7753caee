"""Fixtures shared by all tests: tiny models, published files, texts and the command line."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from helpers.models import TINY, VOCABULARY, write_published
from helpers.processes import Finished
from helpers.reference import Reference

# Some virtual machines report AMX without supporting it, and PyTorch then crashes on bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch
from hypothesis import settings

from elmokit import Elmo
from helpers.pretraining import sentences

# examples may be slow on a busy machine
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# Background jobs of a shell ignore Ctrl-C, and their child processes inherit that. Some tests stop
# child processes with Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    return write_published(tmp_path_factory.mktemp("tiny"), TINY)


@pytest.fixture
def tiny(tiny_folder) -> Elmo:
    return Elmo.load(tiny_folder, device="cpu")


@pytest.fixture
def tiny_reference(tiny_folder) -> Reference:
    return Reference.open(TINY, tiny_folder / "weights.hdf5")


@pytest.fixture(scope="session")
def lm_folder(tmp_path_factory) -> Path:
    return write_published(tmp_path_factory.mktemp("lm"), TINY, seed=1, vocabulary=VOCABULARY)


@pytest.fixture
def lm(lm_folder) -> Elmo:
    """A tiny model with a softmax."""
    return Elmo.load(lm_folder, device="cpu")


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of published models and expected vectors, which is not in the repository."""
    folder = os.environ.get("ELMOKIT_TEST_DATA")
    if not folder:
        pytest.skip("ELMOKIT_TEST_DATA is not set, so there are no published files to compare with")
    path = Path(folder) / "fixtures"
    if not path.is_dir():
        pytest.fail(f"ELMOKIT_TEST_DATA is {folder}, but there is no folder {path}")
    return path


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Texts to train and evaluate on; without pictures, which take most of a short run's time."""
    monkeypatch.setattr("elmokit.pretrain.run.reporter.draw_training", lambda folder: None)
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text("\n".join(sentences(400)) + "\n")
    valid.write_text("\n".join(sentences(60, seed=1)) + "\n")
    return [train], [valid]


@pytest.fixture
def one_thread():
    """One thread, as with OMP_NUM_THREADS=1; sums in several threads differ in the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {**os.environ, "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(before)


@pytest.fixture
def cli(capfd, monkeypatch):
    """Run the command line in this process, which is faster than starting a new one."""
    from elmokit.cli.main import main

    # no line of progress on standard error, however slow the machine is
    monkeypatch.setattr("elmokit.io.progress.LOG_EVERY_SECONDS", 3600)

    def run(*arguments) -> Finished:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["elmokit", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return Finished(caught.value.code or 0, *capfd.readouterr())

    return run
