"""A process that is forked while another thread encodes can encode too."""

import os

import pytest

from helpers.processes import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORK_WHILE_ENCODING = """
import os, signal, sys, threading
import numpy as np, torch
from elmokit import Elmo
from elmokit.kernels.cpu_products import _one_at_a_time

elmo = Elmo.load(sys.argv[1], device="cpu")
expected = elmo.encode(["some words", "more of them"])
cache, encode = elmo._engine.cache, elmo._engine.cache._encode
inside, leave = threading.Event(), threading.Event()

def slowly(words):
    with _one_at_a_time:
        inside.set()
        leave.wait()
    return encode(words)

cache._encode = slowly
thread = threading.Thread(target=elmo.encode, args=(["words it has not seen"],))
thread.start()
inside.wait()  # the thread holds the cache's lock, and the one for rounding weights
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends this process if it hangs
    torch.set_num_threads(1)
    cache._encode = encode
    again = elmo.encode(["some words", "more of them"])
    close = all(np.allclose(a, b, atol=1e-5) for a, b in zip(again, expected))
    with _one_at_a_time:
        os._exit(0 if close else 3)
leave.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_while_another_thread_encodes(tiny_folder):
    done = run_python("-c", FORK_WHILE_ENCODING, tiny_folder)
    assert (done.returncode, done.stderr) == (0, "")
