"""The GPU kernels on a CPU, in Triton's interpreter; run by test_interpreted.py.

The interpreter lacks libdevice.tanh, so a formula replaces it.
"""

import torch
import triton
import triton.language as tl

from elmokit.kernels import softmax_triton, steps_triton
from helpers.packed_checks import check_active_clips, check_empty_sentences, check_nan
from helpers.softmax_checks import check_cross_entropy


@triton.jit
def _tanh(x, EXACT: tl.constexpr):  # noqa: N803
    return 2 * tl.sigmoid(2 * x) - 1


for kernel in (steps_triton._cell, steps_triton._cell_gradient):
    kernel.fn.__globals__["_tanh"] = _tanh
for directions in (1, 2):
    check_active_clips(directions, "cpu", steps_triton)
check_empty_sentences("cpu", steps_triton)
check_nan("cpu", steps_triton)
for dtype in (torch.float32, torch.bfloat16):
    check_cross_entropy(softmax_triton, dtype, "cpu")
print("passed")
