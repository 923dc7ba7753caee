"""Checks of the packed kernels against the step-by-step LSTM, for any implementation of passes."""

from __future__ import annotations

import torch

from elmokit.kernels import packed
from helpers.lstms import flat, make_context, make_stacks, make_starts, run
from helpers.numbers import assert_close


def read_packed(stacks, skip, steps, with_gradients):
    """A function that reads rows with the packed kernel only."""
    weights = [[lstm.weights() for lstm in stack] for stack in stacks]
    context = make_context(stacks, skip)

    def read(rows, ragged, start):
        start = context.zero_state(len(ragged.lengths)) if start is None else start
        layers = packed.run(weights, rows, ragged, start.layers, skip, with_gradients, steps)
        return ((x, (h, c)) for x, h, c in layers)

    return read


def gradients(found, leaves):
    """Gradients of a randomly weighted sum of all outputs and final states."""
    torch.manual_seed(1)
    total = sum((t.float() * torch.randn(t.shape).to(t.device)).sum() for t in flat(found))
    if not total.requires_grad:  # the step-by-step LSTM read no tokens
        return [None] * len(leaves)
    return torch.autograd.grad(total, leaves, allow_unused=True)


def leaves_of(stacks, tokens, starts):
    """Everything that has a gradient."""
    own = [p for stack in stacks for p in stack.parameters()]
    return [tokens, *own, *(starts.tensors if starts is not None else ())]


def check(stacks, tokens, lengths, starts, skip, steps):
    """Compare outputs and gradients; returns those of the step-by-step LSTM."""
    leaves, n = leaves_of(stacks, tokens, starts), len(stacks)
    plain = run(make_context(stacks, skip).read_plainly, tokens, lengths, starts, n)
    fast = run(read_packed(stacks, skip, steps, True), tokens, lengths, starts, n)
    expected = gradients(plain, leaves)
    for a, b in zip(gradients(fast, leaves), expected, strict=True):
        assert (a is None) == (b is None) or not (a if b is None else b).any()
        if a is not None and b is not None:
            assert torch.linalg.norm(a - b) <= 2e-4 * (1 + torch.linalg.norm(b))
    with torch.no_grad():
        inference = run(read_packed(stacks, skip, steps, False), tokens, lengths, starts, n)
    for found in (fast, inference):
        for a, b in zip(flat(found), flat(plain), strict=True):
            assert_close(a.detach().cpu(), b.detach().cpu(), 2e-5)
    return plain, expected


def check_active_clips(directions, device, steps):
    """Both clips are active, and every leaf has a gradient."""
    stacks = make_stacks(directions, 2, 16, 64, (3.0, 3.0), device)
    tokens = torch.randn(8, 30, 16, device=device, requires_grad=True)
    lengths = torch.tensor([30, 1, 17, 0, 30, 29, 2, 8])
    starts = make_starts(stacks, 8)
    (layers, finals), expected = check(stacks, tokens, lengths, starts, True, steps)
    assert 0.02 < (layers[0].abs() == 3).float().mean() < 0.6
    assert (finals[0][1].abs() == 3).float().mean() > 0.1
    assert all(g.abs().sum() > 0 for g in expected)


def check_empty_sentences(device, steps):
    """Sentences without tokens keep their state."""
    stacks = make_stacks(2, 2, 4, 8, (3.0, 3.0), device)
    tokens = torch.randn(3, 2, 4, device=device, requires_grad=True)
    for lengths in ([1, 0, 0], [0, 2, 0], [0, 0, 0]):
        starts = make_starts(stacks, 3)
        check(stacks, tokens, torch.tensor(lengths), starts, True, steps)


def check_nan(device, steps):
    """NaN stays NaN: broken weights must not give plausible outputs."""
    stacks = make_stacks(1, 1, 4, 8, (3.0, 3.0), device)
    tokens = torch.full((1, 3, 4), torch.nan, device=device)
    read = read_packed(stacks, True, steps, False)
    with torch.no_grad():
        layers, _ = run(read, tokens, torch.tensor([3]), directions=1)
    assert layers[0].isnan().all()
