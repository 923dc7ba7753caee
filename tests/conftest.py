"""Models the tests make themselves, in the published layout, and the folder of real fixtures."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from helpers.models import TINY, VOCABULARY, write_published
from helpers.processes import Finished
from helpers.reference import Reference

# Some virtual machines announce AMX without its working, and PyTorch then crashes on bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
from hypothesis import settings

from elmokit import Elmo
from helpers.pretraining import sentences

# a machine may be busy with other things
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# A shell lets its background jobs ignore Ctrl-C, and so do all they start, which some tests stop
# that way.
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


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Published models and expected vectors, which are not part of the repository."""
    folder = os.environ.get("ELMOKIT_TEST_DATA")
    if not folder:
        pytest.skip("ELMOKIT_TEST_DATA is not set: no published fixtures to compare with")
    path = Path(folder) / "fixtures"
    if not path.is_dir():
        pytest.fail(f"ELMOKIT_TEST_DATA is {folder}, but there is no folder {path}")
    return path


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Texts to train and to evaluate on; most of a short run's time would go into its picture."""
    monkeypatch.setattr("elmokit.pretrain.run.reporter.draw_training", lambda folder: None)
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text("\n".join(sentences(400)) + "\n")
    valid.write_text("\n".join(sentences(60, seed=1)) + "\n")
    return [train], [valid]


@pytest.fixture
def cli(capfd, monkeypatch):
    """Run the command in this process, which is faster than starting one each time."""
    from elmokit.cli.main import main

    def run(*arguments) -> Finished:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["elmokit", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return Finished(caught.value.code or 0, *capfd.readouterr())

    return run
