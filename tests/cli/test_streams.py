"""Standard streams that are closed, full, broken or not UTF-8, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from elmokit.cli.main import main
from elmokit.cli.streams import fail, unforeseen


def shell(line, *arguments, **environment):
    """Run a line of bash, with the command line of ElmoKit as its arguments."""
    return subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, "-m", "elmokit", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=120,
    )


def test_a_reader_that_has_read_enough(tiny_folder):
    for arguments in (["info", "-m", tiny_folder], ["--help"], ["info", "--help"]):
        done = shell('set -o pipefail; "$@" | true', *arguments)
        assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk(tiny_folder):
    for arguments in (
        ["info", "-m", tiny_folder],
        ["similarity", "a cat", "the cat", "-m", tiny_folder],
        ["--version"],
    ):
        done = shell('"$@" > /dev/full', *arguments)
        assert done.returncode == 2
        assert done.stderr == (
            "elmokit: cannot write the result to standard output: No space left on device\n"
        )
    assert shell('"$@" 2> /dev/full', "no-such-command").returncode == 2


def test_closed_streams(tiny_folder, tmp_path):
    output = tmp_path / "out"
    done = shell('"$@" >&- 2>&- <&-', "convert", tiny_folder, output)
    assert done.returncode == 0
    assert shell('"$@"', "info", "-m", output).stderr == ""
    done = shell('"$@" <&-', "perplexity", "-", "-m", tiny_folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert shell('"$@" 2>&-', "no-such-command").stdout == ""


def test_output_that_cannot_show_all_characters(tiny_folder):
    sentences = ["naïve 银行 cat", "a cat 🙂"]
    for encoding in ("ascii", "latin-1"):
        done = shell('"$@"', "similarity", *sentences, "--word", "cat", "-m", tiny_folder,
                     PYTHONIOENCODING=encoding)  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        done = shell('"$@"', "similarity", *sentences, "--word", "银行", "-m", tiny_folder,
                     PYTHONIOENCODING=encoding)  # fmt: skip
        assert done.returncode == 2
        assert r"\u94f6\u884c" in done.stderr


@pytest.mark.parametrize("environment", [{"COLUMNS": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}])
def test_odd_terminals(tiny_folder, environment):
    given = ["similarity", "a 猫 cat", "the cat", "--word", "cat", "-m", tiny_folder]
    done = shell('"$@"', *given, **environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c(lm_folder, tmp_path):
    """At any moment: one line, exit code 130, nothing left behind."""
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on a mat .\n" * 300_000)
    command = [sys.executable, "-m", "elmokit", "perplexity", str(text), "-m", str(lm_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        while maps.exists() and b"_multiarray_umath" not in maps.read_bytes():  # still starting
            time.sleep(0.05)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # a shell shows both as 130
    assert (out, err) == (b"", b"elmokit: stopped\n")


OUT_OF_MEMORY = [MemoryError("much"), RuntimeError("DefaultCPUAllocator: can't allocate memory")]


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), typer.Abort(), *OUT_OF_MEMORY])
def test_what_ends_a_command(monkeypatch, capsys, raised):
    def stop(*_, **__):
        raise raised

    monkeypatch.setattr(sys, "argv", ["elmokit", "info"])
    monkeypatch.setattr("elmokit.cli.options.ModelOptions.load", stop)
    with pytest.raises(SystemExit) as caught:
        main()
    interrupted = isinstance(raised, KeyboardInterrupt | typer.Abort)
    assert caught.value.code == (130 if interrupted else 2)
    assert capsys.readouterr().err.startswith(
        "elmokit: stopped\n" if interrupted else "elmokit: out of memory; "
    )


def test_messages_are_one_line_of_bounded_length(capsys):
    fail("a\nb\x1b" + "c" * 5000)
    shown = capsys.readouterr().err
    assert shown.startswith(r"elmokit: a\nb\x1bccc")
    assert shown.count("\n") == 1
    assert len(shown) < 2100


def test_unforeseen_errors(capsys):
    assert unforeseen(PermissionError(13, "Permission denied", "x" * 500)) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("elmokit: cannot use 'xxx")
    assert shown.endswith("…: Permission denied\n")
    assert unforeseen(OSError(5000, "odd")) == 2
    assert capsys.readouterr().err == "elmokit: odd\n"
    assert unforeseen(SystemExit(3)) == 3
