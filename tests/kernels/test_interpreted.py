"""The GPU kernels, tested on any machine that has Triton."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.processes import run_python


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_agree_in_the_interpreter_of_triton():
    script = Path(__file__).with_name("interpreted.py")
    path = os.pathsep.join([str(script.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = run_python(script, env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path})
    assert done.stdout == "passed\n", done.stderr
