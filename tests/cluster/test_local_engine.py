"""The engine of one machine, as a user runs it: workers and drivers that die, and resuming."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.processes import run_process
from helpers.shards import check_vectors, finished, with_faults, write_corpus

SHARDS = 8


@pytest.fixture
def command(tmp_path, tiny_folder):
    """The command line, up to options that differ."""
    text, out = tmp_path / "text.txt", tmp_path / "out"
    size = len(write_corpus(text, SHARDS * 20)) // SHARDS
    return ["embed", text, out, "--engine", "local", "--workers", 2, "--shard-rows", size,
            "-m", tiny_folder, "--device", "cpu"]  # fmt: skip


def lines_of(command):
    return [line.strip() for line in command[1].read_text(encoding="utf-8").split("\n")[:-1]]


def test_shards_of_workers_that_die_are_repeated(command, tmp_path, tiny, one_thread):
    faults = with_faults(tmp_path / "faults", die_1="", orphan_2="", error_3="")
    done = run_process(*command, env=os.environ | faults)
    assert done.returncode == 0, done.stderr
    assert "3 attempts repeated, 0 shards set aside" in done.stdout
    check_vectors(tmp_path / "out", tiny, lines_of(command))
    records = [json.loads(path.read_text()) for path in (tmp_path / "out/shards").iterdir()]
    assert {r["shard"] for r in records if r["attempt"] > 1} == {1, 2, 3}


def test_poison_is_set_aside(command, tmp_path, tiny, one_thread):
    faults = with_faults(tmp_path / "faults", poison_4="")
    done = run_process(*command, env=os.environ | faults)
    assert done.returncode == 2
    assert "shards were set aside, all others are done; shard 4: it failed 3 times: its worker " \
        "died (process" in done.stderr  # fmt: skip
    assert "was ended by SIGKILL" in done.stderr
    written = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [aside["shard"] for aside in written["set_aside"]] == [4]
    total = finished(tmp_path / "out") + 1
    assert len(written["shards"]) == total - 1
    (tmp_path / "faults" / "poison-4").unlink()
    again = run_process(*command, "--resume")
    assert again.returncode == 0, again.stderr
    assert f"({total - 1} from earlier runs)" in again.stdout
    check_vectors(tmp_path / "out", tiny, lines_of(command))


def start(command, environment):
    return subprocess.Popen(
        [sys.executable, "-m", "elmokit", *map(str, command)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C of a test does not reach the test itself
    )


def wait_for(n, out):
    until = time.monotonic() + 120
    while finished(out) < n:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_continues(command, tmp_path, tiny, one_thread, how):
    out = tmp_path / "out"
    faults = with_faults(tmp_path / "faults", slow="1")
    process = start(command, faults)
    try:
        wait_for(2, out)
        os.killpg(process.pid, how) if how == signal.SIGINT else process.kill()
        _, errors = process.communicate(timeout=60)  # ends when the last worker has
    finally:
        process.kill()
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), errors
    assert "Traceback" not in errors
    if how == signal.SIGINT:
        assert "elmokit: stopped; add --resume to the same command to continue" in errors
    before = finished(out)
    assert 2 <= before < SHARDS
    assert not (out / "manifest.json").exists()
    done = run_process(*command, "--resume")
    assert done.returncode == 0, done.stderr
    assert f"{before} of " in done.stdout
    check_vectors(out, tiny, lines_of(command))
    assert not (out / ".tmp").exists()


def test_a_full_disk_ends_the_run(command, tmp_path, tiny, one_thread):
    faults = with_faults(tmp_path / "faults", full="") | {"ELMOKIT_TEST_FULL": "1"}
    done = run_process(*command, env=os.environ | faults)
    assert done.returncode == 2
    assert "No space left on device; solve this, and continue with --resume" in done.stderr
    assert finished(tmp_path / "out") == 0
    assert run_process(*command, "--resume").returncode == 0
    check_vectors(tmp_path / "out", tiny, lines_of(command))


def test_two_drivers_do_not_write_the_same_folder(command, tmp_path):
    process = start(command, with_faults(tmp_path / "faults", slow="100"))
    try:
        until = time.monotonic() + 120
        while not (tmp_path / "out" / "plan.json").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        done = run_process(*command, "--resume")
        assert done.returncode == 2
        assert "another process is writing" in done.stderr
    finally:
        process.kill()
        process.communicate(timeout=60)
