"""elmokit demo."""

from helpers.pictures import n_colours
from helpers.processes import run_process


def test_demo(tmp_path):
    done = run_process("demo", "--out", tmp_path / "new" / "demo")
    assert done.returncode == 0, done.stderr
    assert "not life but a [play]" in done.stdout  # nearest to the theatre's
    assert "orchestra .   piano, violin" in done.stdout
    assert "river .   side, " in done.stdout
    assert n_colours(tmp_path / "new" / "demo" / "banks.png") > 20
    assert "LSTM layer 2" in done.stdout
    assert "token layer" in done.stdout
    assert done.stderr == ""


def test_demo_with_a_model(cli, tiny_folder):
    done = cli("demo", "--model", tiny_folder)
    assert done.returncode == 0, done.stderr
    assert "token layer" in done.stdout
    assert "The LSTM layers read the sentence" in done.stdout


def test_the_folder_is_checked_first(cli, tmp_path):
    (tmp_path / "file").write_text("")
    done = cli("demo", "--out", tmp_path / "file", "-m", "no such model")
    assert done.returncode == 2
    assert "is a file; give another folder" in done.stderr
    assert done.stdout == ""
