"""Global options, and mistakes as one sentence."""

import shutil

import pytest

from elmokit.io import progress
from helpers.processes import run_process, run_python


def test_no_warnings(tiny_folder):
    """Nothing from torch or h5py reaches the user."""
    for arguments in (
        ["info", "-m", tiny_folder],
        ["similarity", "a bank", "the bank", "--word", "bank", "-m", tiny_folder],
    ):
        done = run_process(*arguments)
        assert done.returncode == 0
        assert done.stderr == ""


def test_quiet(cli, tiny_folder, tmp_path):
    done = cli("-q", "convert", tiny_folder, tmp_path / "a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not progress.enabled
    assert "parameters" in cli("--quiet", "info", "-m", tiny_folder).stdout
    refused = cli("--quiet", "convert", tiny_folder, tmp_path / "a")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert cli("convert", tiny_folder, tmp_path / "b").stdout
    assert progress.enabled


def test_threads(tiny_folder):
    code = (
        "import sys; from elmokit.cli.main import main\n"
        "try: main()\nexcept SystemExit: import torch; print(torch.get_num_threads())"
    )
    for n in (1, 2):
        done = run_python("-c", code, "--threads", n, "info", "-m", tiny_folder)
        assert done.stdout.splitlines()[-1] == str(n), done.stderr
    assert run_process("--threads", 0, "info").returncode == 2


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: shutil.rmtree(f), "there is no model"),
        (lambda f: (f / "options.json").unlink(), "is not a model: looked for"),
        (lambda f: (f / "options.json").write_text("{"), "is not valid JSON"),
        (lambda f: (f / "weights.hdf5").write_bytes(b"x" * 100), "not a complete HDF5 file"),
    ],
)
@pytest.mark.parametrize("command", ["info", "convert"])
def test_bad_models_are_one_sentence(cli, tiny_folder, tmp_path, break_it, message, command):
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    break_it(folder)
    new = tmp_path / "new"
    done = cli(*(["info", "-m", folder] if command == "info" else ["convert", folder, new]))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not new.exists()
