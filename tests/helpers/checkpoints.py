"""Comparing the weights of two models."""

import torch

from elmokit import Elmo


def same_tensors(a: Elmo, b: Elmo) -> bool:
    """Return whether two models have the same weights, bit for bit."""
    first, second = a.checkpoint().tensors, b.checkpoint().tensors
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
