"""Both directions in parallel: the same results, and PyTorch's settings unchanged."""

import os
import time
from threading import Event

import pytest
import torch

from elmokit.kernels import parallel
from helpers.models import SENTENCES
from helpers.numbers import assert_close
from helpers.processes import run_python


@pytest.mark.parametrize("n_sentences", [2, 40])
def test_two_threads_agree_with_one(tiny, n_sentences):
    """Few sentences share the threads in every product; many use a thread per direction."""
    sentences = (SENTENCES * n_sentences)[:n_sentences]
    threads = torch.get_num_threads()
    parallel._pools.clear()
    try:
        torch.set_num_threads(1)
        alone = tiny.encode(sentences, "all")
        torch.set_num_threads(2)
        together = tiny.encode(sentences, "all")
        assert torch.get_num_threads() == 2
        has_workers = any(key == (os.getpid(), 2) for key in parallel._pools)
        assert has_workers == (n_sentences == 40)
    finally:
        torch.set_num_threads(threads)
    for a, b in zip(alone, together, strict=True):
        assert_close(a, b)


def test_tasks_share_the_threads_and_results_are_reproducible(tiny):
    threads = torch.get_num_threads()
    try:
        for n, share in ((2, 1), (4, 2)):
            torch.set_num_threads(n)
            with torch.no_grad():
                for _ in range(5):
                    tasks = [lambda: (torch.ones(10).sum(), torch.get_num_threads())[1]] * 2
                    assert parallel.run_all(tasks, torch.device("cpu")) == [share, share]
            results = {tiny.encode("a few words", "all").tobytes() for _ in range(20)}
            assert len(results) == 1
    finally:
        torch.set_num_threads(threads)


@pytest.fixture
def two_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("two_threads")
def test_tasks_keep_the_mode_of_the_caller():
    tasks = [lambda: torch.ones(1)] * 2
    with torch.no_grad():
        made = parallel.run_all(tasks, torch.device("cpu"))
    assert not any(t.is_inference() or t.requires_grad for t in made)
    with torch.inference_mode():
        made = parallel.run_all(tasks, torch.device("cpu"))
    assert all(t.is_inference() for t in made)


@pytest.mark.usefixtures("two_threads")
def test_an_error_is_raised_after_all_tasks_have_ended():
    """A task that outlives the call could write into the next batch."""
    failing, done = Event(), []

    def fail():
        failing.set()
        raise ValueError("as it is")

    def finish_later():
        failing.wait()
        time.sleep(0.1)  # long enough for a caller that does not wait to return
        done.append(True)

    with torch.no_grad(), pytest.raises(ValueError, match="as it is"):
        parallel.run_all([fail, finish_later], torch.device("cpu"))
    assert done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_encode_works_after_a_fork(tiny_folder):
    """As in a DataLoader worker, the child uses one thread.

    PyTorch does not support more: on some processors a product in the child of a process that used
    several OpenMP threads never returns.
    """
    code = (
        "import os, sys, torch; from elmokit import Elmo; torch.set_num_threads(2)\n"
        "elmo = Elmo.load(sys.argv[1], device='cpu'); texts = ['a few words'] * 20\n"
        "a = elmo.encode(texts)\n"
        "pid = os.fork()\n"
        "if not pid: torch.set_num_threads(1)\n"
        "b = elmo.encode(texts)\n"
        "assert max(abs(x - y).max() for x, y in zip(a, b)) < 1e-5\n"
        "if pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = run_python("-W", "ignore", "-c", code, tiny_folder)
    assert done.returncode == 0, done.stderr


def test_encode_works_in_a_thread_that_outlives_the_main_thread(tiny_folder):
    code = (
        "import sys, threading, time, torch; from elmokit import Elmo; torch.set_num_threads(2)\n"
        "elmo = Elmo.load(sys.argv[1], device='cpu'); elmo.encode('a few words')\n"
        "def later():\n"
        "    threading.main_thread().join(); time.sleep(0.2)\n"
        "    print(elmo.encode('a few words').shape)\n"
        "threading.Thread(target=later).start()\n"
    )
    done = run_python("-W", "ignore", "-c", code, tiny_folder)
    assert done.stdout == "(3, 16)\n", done.stderr
