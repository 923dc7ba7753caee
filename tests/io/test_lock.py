"""Locks on folders: one writer at a time, and none left behind."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys

import pytest

from elmokit.errors import OutputError
from elmokit.io.lock import lock_folder

HOLD = """
import os, sys, time
from pathlib import Path
from elmokit.io.lock import lock_folder
with lock_folder(Path(sys.argv[1]), Path("out")):
    if sys.argv[2] == "alone" or not os.fork():  # the child, if any, outlives its parent
        print("locked", os.getpid(), flush=True)
    time.sleep(600)
"""


def test_a_second_writer_is_refused_at_once(tmp_path):
    folder = tmp_path / "job"
    refused = pytest.raises(OutputError, match="another process is writing .*out.hdf5; wait")
    with lock_folder(folder, tmp_path / "out.hdf5"), refused:
        lock_folder(folder, tmp_path / "out.hdf5").__enter__()
    with lock_folder(folder, tmp_path / "out.hdf5"):
        pass


@pytest.mark.parametrize(
    "children",
    [
        "alone",
        pytest.param(
            "with a child",
            marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
        ),
    ],
)
def test_a_killed_process_leaves_no_lock(tmp_path, children):
    folder = tmp_path / "job"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), children], stdout=subprocess.PIPE, text=True
    )
    last = int(holder.stdout.readline().split()[1])
    try:
        with pytest.raises(OutputError, match="another process"):
            lock_folder(folder, tmp_path / "out").__enter__()
        holder.kill()
        holder.wait()
        with lock_folder(folder, tmp_path / "out"):
            pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(last, signal.SIGKILL)
        holder.kill()
        holder.communicate()


def test_the_folder_may_be_deleted_while_it_is_locked(tmp_path):
    folder = tmp_path / "job"
    with lock_folder(folder, tmp_path / "out"):
        shutil.rmtree(folder)
        with lock_folder(folder, tmp_path / "out"):  # a new folder, so a new lock
            pass
