"""The GPU's kernels on a CPU, by Triton's interpreter; run by test_packed.py.

The interpreter lacks the GPU's own tanh, so that a formula stands in for it.
"""

import test_packed
import test_softmax_passes
import torch
import triton
import triton.language as tl

from elmokit.kernels import softmax_triton, steps_triton


@triton.jit
def _tanh(x, EXACT: tl.constexpr):  # noqa: N803
    return 2 * tl.sigmoid(2 * x) - 1


for kernel in (steps_triton._cell, steps_triton._cell_gradient):
    kernel.fn.__globals__["_tanh"] = _tanh
test_packed.passes = lambda _: steps_triton
for directions in (1, 2):
    test_packed.test_both_clips_active(directions, "cpu")
test_packed.test_sentences_without_tokens("cpu")
test_packed.test_what_is_no_number_stays_so("cpu")
for dtype in (torch.float32, torch.bfloat16):
    test_softmax_passes.check(softmax_triton, dtype, "cpu")
print("all right")
