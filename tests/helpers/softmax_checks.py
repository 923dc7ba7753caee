"""The check of a fused cross-entropy against the one in PyTorch."""

from __future__ import annotations

import torch

from elmokit.kernels import softmax_torch
from helpers.numbers import assert_close


def check_cross_entropy(passes, dtype, device):
    """Losses and gradients agree, over the full vocabulary and over a sample."""
    torch.manual_seed(0)
    for n in (50, 4096, 5000):
        logits = (4 * torch.randn(9, n)).to(device, dtype)
        bias, own = torch.randn(n, device=device), torch.randn(9, device=device)
        ids = torch.randperm(2 * n, device=device)[:n]
        columns = torch.randint(0, n, (9,), device=device)
        # some targets are in the sample, and must not count twice
        sampled = torch.where(columns % 2 == 0, ids[columns], 2 * n)
        _check(passes, logits, (bias, columns, None, None))
        _check(passes, logits, (bias, sampled, ids, own))


def _check(passes, logits, arguments):
    expected, found = logits.clone(), logits.clone()
    losses, d_own = softmax_torch.cross_entropy(expected, *arguments, True)
    found_losses, found_d_own = passes.cross_entropy(found, *arguments, True)
    assert_close(found_losses.cpu(), losses.cpu())
    tolerance = 5e-3 if logits.dtype == torch.bfloat16 else 1e-5
    assert_close(found.float().cpu(), expected.float().cpu(), tolerance)
    if d_own is not None:
        assert_close(found_d_own.cpu(), d_own.cpu(), 1e-6)
    unchanged = logits.clone()
    found_losses, _ = passes.cross_entropy(unchanged, *arguments, False)
    assert_close(found_losses.cpu(), losses.cpu())
    assert torch.equal(unchanged, logits)
