"""Models the tests make themselves, in the published layout, and the folder of real fixtures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Some virtual machines announce AMX without its working, and PyTorch then crashes on bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import h5py
import numpy as np
import pytest
from hypothesis import settings

from elmokit import Elmo
from pretraining import sentences
from reference import Reference

# a machine may be busy with other things
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# A shell lets its background jobs ignore Ctrl-C, and so do all they start, which some tests stop
# that way.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TINY = {
    "lstm": {
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
        "n_layers": 2,
        "projection_dim": 8,
        "dim": 24,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 8], [3, 12]],
        "n_highway": 2,
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}

SENTENCES = [
    ["The", "first", "sentence", "."],
    ["Second"],
    ["naïve", "café", "日本語", "🙂", "x" * 60, "é" * 30],
    [],
    ["a", "/", "b", ":", "<S>", "</S>", "<UNK>"],
    [str(i) for i in range(25)],
]


def write_published(folder: Path, options: dict, seed: int = 0, vocabulary: list | None = None):
    """options.json and weights.hdf5 of random weights with which both clips are really active.

    Large input and forget biases fill the cells up to their bound, and the projection is wide
    enough to leave its own now and then; the recurrent weights are small, so that rounding dies
    out instead of growing.
    """
    rng = np.random.default_rng(seed)
    cnn, lstm = options["char_cnn"], options["lstm"]
    p, h, dim = lstm["projection_dim"], lstm["dim"], cnn["embedding"]["dim"]
    n_filters = sum(count for _, count in cnn["filters"])

    def normal(*shape, scale=1.0):
        return rng.normal(0, scale, shape).astype(np.float32)

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        file["char_embed"] = normal(261, dim)
        for i, (width, count) in enumerate(cnn["filters"]):
            file[f"CNN/W_cnn_{i}"] = normal(1, width, dim, count, scale=0.5)
            file[f"CNN/b_cnn_{i}"] = normal(count, scale=0.5)
        for k in range(cnn.get("n_highway", 0)):
            for name in ("carry", "transform"):
                file[f"CNN_high_{k}/W_{name}"] = normal(n_filters, n_filters, scale=n_filters**-0.5)
                file[f"CNN_high_{k}/b_{name}"] = normal(n_filters)
        if n_filters != p:
            file["CNN_proj/W_proj"] = normal(n_filters, p, scale=n_filters**-0.5)
            file["CNN_proj/b_proj"] = normal(p, scale=0.5)
        for direction in range(2):
            for layer in range(lstm.get("n_layers", 1)):
                cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel = normal(2 * p, 4 * h, scale=0.5 * p**-0.5)
                kernel[p:] *= 0.2
                bias = normal(4, h)
                bias[0] += 2
                bias[1] *= 2
                bias[2] += 3
                file[cell + "W_0"], file[cell + "B"] = kernel, bias.reshape(-1)
                if p != h:
                    file[cell + "W_P_0"] = normal(h, p, scale=4.5 * h**-0.5)
    if vocabulary is not None:
        with h5py.File(folder / "softmax.hdf5", "w") as file:
            file["softmax/W"] = normal(len(vocabulary), p)
            file["softmax/b"] = normal(len(vocabulary))
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary))
    return folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    return write_published(tmp_path_factory.mktemp("tiny"), TINY)


@pytest.fixture
def tiny(tiny_folder) -> Elmo:
    return Elmo.load(tiny_folder, device="cpu")


@pytest.fixture
def tiny_reference(tiny_folder) -> Reference:
    return Reference.open(TINY, tiny_folder / "weights.hdf5")


VOCABULARY = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "a", "mat", "."]


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


@dataclass
class Finished:
    """What a command gave back."""

    returncode: int
    stdout: str
    stderr: str


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


def run_process(*arguments, stdin: str | None = None, **keywords) -> Finished:
    """Run the command in a process of its own, as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "elmokit", *map(str, arguments)],
        input=None if stdin is None else stdin.encode(),
        capture_output=True,
        timeout=120,
        **keywords,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())
