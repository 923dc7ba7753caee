"""The fused cross-entropy of a GPU against the one in PyTorch."""

import pytest
import torch

from helpers.softmax_checks import check_cross_entropy


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_fused_cross_entropy_agrees_with_pytorch(dtype):
    from elmokit.kernels import softmax_triton

    check_cross_entropy(softmax_triton, dtype, "cuda")
