"""The linear probe and its training."""

import numpy as np
import pytest
import torch

from elmokit.analysis.probes.linear import LinearProbe, ProbeSettings, standardise, train_probe


def separable(n=600, seed=0):
    """Tokens (N, 2, 3) whose second layer separates the tags linearly; the first is noise."""
    rng = np.random.default_rng(seed)
    tags = rng.integers(0, 3, n)
    vectors = rng.normal(0, 1, (n, 2, 3)).astype(np.float32)
    vectors[:, 1] = 10 * np.eye(3)[tags] + rng.normal(0, 0.1, (n, 3))
    return torch.from_numpy(vectors), torch.from_numpy(tags), torch.arange(n) % 10 == 0


def test_separable_tags_are_all_found():
    vectors, tags, held_out = separable()
    standardise(vectors)
    for layers, mixed in ((slice(1, 2), False), (slice(None), False), (slice(None), True)):
        found = train_probe(vectors[:, layers], tags, held_out, 3, mixed=mixed)
        assert found.accuracy(vectors[:, layers], tags) == 100
    assert train_probe(vectors[:, :1], tags, held_out, 3).accuracy(vectors[:, :1], tags) < 60


def test_the_mix_learns_which_layer_matters():
    vectors, tags, held_out = separable()
    standardise(vectors)
    found = train_probe(vectors, tags, held_out, 3, mixed=True)
    shares = found.shares()
    assert sum(shares) == pytest.approx(1)
    assert shares[1] > 0.6
    assert train_probe(vectors, tags, held_out, 3).shares() is None


def test_training_is_the_same_twice():
    vectors, tags, held_out = separable()
    a, b = (train_probe(vectors, tags, held_out, 3, seed=4).linear.weight for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, train_probe(vectors, tags, held_out, 3, seed=5).linear.weight)


def test_training_stops():
    """Tags that cannot be learned stop training early; the best state is kept."""
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(300, 1, 8, generator=rng)
    tags = torch.randint(0, 2, (300,), generator=rng)
    held_out = torch.arange(300) >= 200
    few = ProbeSettings(most_rounds=15)
    many = ProbeSettings(most_rounds=1000)
    a, b = (train_probe(vectors, tags, held_out, 2, settings=s) for s in (few, many))
    assert torch.equal(a.linear.weight, b.linear.weight)


def test_training_tells_of_its_rounds():
    vectors, tags, held_out = separable()
    told = []
    settings = ProbeSettings(most_rounds=30, patience=2)
    train_probe(vectors[:, 1:], tags, held_out, 3, settings=settings, advance=told.append)
    assert sum(told) == 30
    assert told[:-1] == [1] * (len(told) - 1)
    assert told[-1] > 1  # stopped in time


def test_held_out_tokens_are_not_trained_on():
    """The held-out half contradicts the other; the probe learns only the latter."""
    vectors = torch.eye(2)[torch.arange(400) % 2][:, None]
    held_out = torch.arange(400) >= 200
    tags = torch.arange(400) % 2
    tags[held_out] = 1 - tags[held_out]
    found = train_probe(vectors, tags, held_out, 2, settings=ProbeSettings(most_rounds=5))
    assert found.accuracy(vectors[held_out], tags[held_out]) == 0


def test_standardise():
    vectors = torch.tensor([[[1.0, 5.0]], [[3.0, 5.0]]], dtype=torch.float16)
    other = torch.tensor([[[2.0, 5.0]], [[5.0, 5.0]]], dtype=torch.float16)
    standardise(vectors, other)
    assert vectors.tolist() == [[[-1.0, 0.0]], [[1.0, 0.0]]]
    assert other.tolist() == [[[0.0, 0.0]], [[3.0, 0.0]]]


def test_scores_by_hand():
    found = LinearProbe(2, 2, 2)
    with torch.no_grad():
        found.linear.weight[:] = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 2.0]])
        found.linear.bias[:] = torch.tensor([0.5, 0])
    scores = found(torch.tensor([[[1.0, 9], [9, 3]]], dtype=torch.float16))
    assert scores.tolist() == [[1.5, 6.0]]
