"""Checks that every head of a task model must pass: padding does not matter, and it learns."""

from __future__ import annotations

import torch

from helpers.numbers import assert_close

LENGTHS = [3, 7, 0, 1, 5, 7]
"""Of the sentences of a batch: unsorted, one empty, two of the same length."""


def mask_of(lengths, time=None):
    """True (B, T) at tokens."""
    return torch.arange(time or max(lengths)) < torch.tensor(lengths)[:, None]


def assert_padding_does_not_matter(run, *inputs, lengths=None):
    """Each row gives the same alone, cut to its tokens, as in a batch with noise in the padding.

    Args:
        run: Takes inputs and a mask (B, T), gives results (B, …) with (B, T, …) zero in padding.
        inputs: Tensors (B, T, …).
        lengths: Tokens of each row; :data:`LENGTHS` if None.
    """
    lengths = lengths or LENGTHS
    time = inputs[0].shape[1]
    mask = mask_of(lengths, time)
    together = run(*inputs, mask).detach()
    other = [torch.where(_like(mask, x), x, x.flip(0, 1)) for x in inputs]
    assert_close(run(*other, mask).detach(), together)
    for row, length in enumerate(lengths):
        alone = run(*(x[row : row + 1, :length] for x in inputs), mask[row : row + 1, :length])
        alone, expected = alone.detach()[0], together[row]
        if together.dim() > 1 and together.shape[1] == time and alone.shape[0] == length:
            assert not expected[length:].any()
            expected = expected[:length]
        assert_close(alone, expected)


def _like(mask, x):
    return mask.reshape(*mask.shape, *[1] * (x.dim() - 2))


def overfit(loss, *modules, steps=60, rate=0.03):
    """The loss after some steps of Adam."""
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, rate)
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
    with torch.no_grad():
        return loss().item()


def assert_seeded(make):
    """The same seed gives the same weights, another seed gives others."""
    states = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        states.append(make().state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])
