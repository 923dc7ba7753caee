"""The other commands, run as a user runs them."""

import json
import shutil
import subprocess
import sys
import time

import pytest

from elmokit import Elmo
from helpers.pictures import n_colours
from helpers.processes import run_process


def test_help_is_instant():
    def seconds():
        started = time.perf_counter()
        done = run_process("--help")
        assert done.returncode == 0
        for command in ("demo", "embed", "similarity", "info", "convert"):
            assert command in done.stdout
        return time.perf_counter() - started

    assert min(seconds() for _ in range(3)) < 0.5


@pytest.mark.parametrize(
    "command",
    "demo embed similarity scatter surprisal index neighbours probe geometry change info convert "
    "perplexity-by wsd".split(),
)
def test_every_command_has_help_without_torch(command):
    code = (
        "import sys; sys.argv[0] = 'elmokit'\n"
        "from elmokit.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert not {'torch', 'h5py', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: elmokit" in done.stdout


def test_version(cli):
    from elmokit import __version__

    assert cli("--version").stdout == f"elmokit {__version__}\n"


def test_no_warnings(tiny_folder):
    """Nothing from torch or h5py reaches the user."""
    for arguments in (
        ["info", tiny_folder],
        ["similarity", "a bank", "the bank", "--word", "bank", "-m", tiny_folder],
    ):
        done = run_process(*arguments)
        assert done.returncode == 0
        assert done.stderr == ""


def test_demo(tmp_path):
    done = run_process("demo", "--out", tmp_path / "new" / "demo")
    assert done.returncode == 0, done.stderr
    assert "not life but a [play]" in done.stdout  # for the theatre's
    assert "side, " in done.stdout
    assert n_colours(tmp_path / "new" / "demo" / "banks.png") > 20
    assert "LSTM layer 2" in done.stdout
    assert "token layer" in done.stdout
    assert done.stderr == ""


def test_demo_with_a_model(cli, tiny_folder):
    done = cli("demo", "--model", tiny_folder)
    assert done.returncode == 0, done.stderr
    assert "token layer" in done.stdout
    assert "the LSTM layers read the sentence" in done.stdout


def test_similarity(cli, tiny_folder):
    tiny = Elmo.load(tiny_folder, device="cpu")
    done = cli("similarity", "I went to the bank", "the bank of the bank", "--word", "bank",
               "-m", tiny_folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bank 5 ~ bank 2" in done.stdout
    assert "bank 5 ~ bank 5" in done.stdout
    from elmokit.analysis.similarity import word_similarity

    pairs = word_similarity(tiny, "I went to the bank", "the bank of the bank", "bank")
    assert [(p.first, p.second) for p in pairs] == [(4, 1), (4, 4)]
    assert pairs[0].cosines[0] == pytest.approx(1)
    for pair in pairs:
        for cosine in pair.cosines:
            assert f"{cosine:.3f}" in done.stdout
    done = cli("similarity", "one sentence", "another", "-m", tiny_folder)
    assert "sentences" in done.stdout
    done = cli("similarity", "one sentence", "another", "--word", "bank", "-m", tiny_folder)
    assert done.returncode == 2
    assert "'bank' is not among the tokens of 'one sentence'" in done.stderr


def test_similarity_by_hand(tiny):
    import numpy as np

    from elmokit.analysis.similarity import cosine, sentence_similarity

    assert cosine(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.5**0.5)
    assert cosine(np.zeros(2), np.ones(2)) == 0
    assert sentence_similarity(tiny, "a b", "a b") == pytest.approx([1, 1, 1])


def test_info(cli, tiny_folder):
    facts = json.loads(cli("info", tiny_folder, "--json").stdout)
    tiny = Elmo.load(tiny_folder)
    assert facts["parameters"] == tiny.n_parameters
    assert facts["weights sha256"] == tiny.checkpoint().checksum()
    assert facts["tokenizer"] == "whitespace"
    assert facts["format"] == "bilm-tf HDF5 (folder)"
    plain = cli("info", tiny_folder).stdout
    for value in (facts["weights sha256"], f"{tiny.n_parameters:,}", "1:4 2:8 3:12"):
        assert value in plain


def test_convert_there_and_back(cli, tiny_folder, tmp_path):
    assert cli("convert", tiny_folder, tmp_path / "native").returncode == 0
    again = cli("convert", tmp_path / "native", tmp_path / "back", "--to", "bilm-tf")
    assert again.returncode == 0
    sums = {
        json.loads(cli("info", folder, "--json").stdout)["weights sha256"]
        for folder in (tiny_folder, tmp_path / "native", tmp_path / "back")
    }
    assert len(sums) == 1
    refused = cli("convert", tiny_folder, tmp_path / "native")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert cli("convert", tiny_folder, tmp_path / "native", "--force").returncode == 0


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: shutil.rmtree(f), "there is no model"),
        (lambda f: (f / "options.json").unlink(), "is not a model: looked for"),
        (lambda f: (f / "options.json").write_text("{"), "is not valid JSON"),
        (lambda f: (f / "weights.hdf5").write_bytes(b"x" * 100), "not a whole HDF5 file"),
    ],
)
@pytest.mark.parametrize("command", ["info", "convert"])
def test_bad_models_are_one_sentence(cli, tiny_folder, tmp_path, break_it, message, command):
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    break_it(folder)
    done = cli(command, folder, *([tmp_path / "new"] if command == "convert" else []))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (tmp_path / "new").exists()
