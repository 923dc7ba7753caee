"""The middle of a softmax's loss: the fused kernel against PyTorch, full and sampled."""

import pytest
import torch

from elmokit.kernels import softmax_torch


def check(passes, dtype, device):
    torch.manual_seed(0)
    tolerance = {"atol": 5e-3 if dtype == torch.bfloat16 else 1e-5, "rtol": 0}
    for n in (50, 4096, 5000):
        logits = (4 * torch.randn(9, n)).to(device, dtype)
        bias, own = torch.randn(n, device=device), torch.randn(9, device=device)
        ids = torch.randperm(2 * n, device=device)[:n]
        targets = torch.randint(0, n, (9,), device=device)
        for sample in (None, ids):
            theirs, ours = logits.clone(), logits.clone()
            # some targets are among the sample, and must not count twice
            right = (
                targets if sample is None else torch.where(targets % 2 == 0, ids[targets], 2 * n)
            )
            arguments = (bias, right, sample, None if sample is None else own)
            losses, d_own = softmax_torch.cross_entropy(theirs, *arguments, True)
            found, d_found = passes.cross_entropy(ours, *arguments, True)
            torch.testing.assert_close(found, losses, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(ours.float(), theirs.float(), **tolerance)
            if sample is not None:
                torch.testing.assert_close(d_found, d_own, atol=1e-6, rtol=0)
            kept = logits.clone()
            again, _ = passes.cross_entropy(kept, *arguments, False)
            torch.testing.assert_close(again, losses, atol=1e-5, rtol=1e-5)
            assert torch.equal(kept, logits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_fused(dtype):
    from elmokit.kernels import softmax_triton

    check(softmax_triton, dtype, "cuda")
