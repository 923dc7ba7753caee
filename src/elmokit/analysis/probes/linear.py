"""A linear probe: one softmax layer on frozen vectors, its training stopped in time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.nn.scalar_mix import ScalarMix

_AT_ONCE = 8192  # tokens


@dataclass(frozen=True)
class ProbeSettings:
    """How probes are trained."""

    learning_rate: float = 0.003
    """Of AdamW at the start; halved after every round that brings no gain."""
    weight_decay: float = 0.1
    batch_size: int = 1024
    least_steps: int = 50
    """A round is as many passes over the tokens as make so many steps."""
    patience: int = 4
    """Rounds without gain after which training ends."""
    most_rounds: int = 40


class LinearProbe(nn.Module):
    """Scores of tags from the vectors of tokens.

    Args:
        n_layers: How many layers K a token's vectors have.
        dim: Their width D.
        n_tags: How many tags there are.
        mixed: Whether the layers are mixed with learned weights; else they stand side by side.
    """

    def __init__(self, n_layers: int, dim: int, n_tags: int, mixed: bool = False) -> None:
        super().__init__()
        self.mix = ScalarMix(n_layers) if mixed else None
        self.linear = nn.Linear(dim if mixed else n_layers * dim, n_tags)
        nn.init.zeros_(self.linear.weight)  # the loss has one minimum, so that any start will do
        nn.init.zeros_(self.linear.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores (N, tags) of tokens (N, K, D), in any precision."""
        vectors = vectors.float()
        mixed = vectors.flatten(1) if self.mix is None else self.mix(vectors.transpose(0, 1))
        return self.linear(mixed)

    @torch.inference_mode()
    def predict(self, vectors: Tensor) -> Tensor:
        """The tag (N,) of each token (N, K, D)."""
        return torch.cat([self(some).argmax(1) for some in torch.split(vectors, _AT_ONCE)])

    def accuracy(self, vectors: Tensor, tags: Tensor) -> float:
        """Per cent of tokens (N, K, D) whose tag (N,) is found."""
        return 100 * (self.predict(vectors) == tags).double().mean().item()

    def shares(self) -> list[float] | None:
        """How much of the mix each layer is; None where there is no mix."""
        return None if self.mix is None else torch.softmax(self.mix.weights, 0).tolist()


def standardise(vectors: Tensor, *others: Tensor) -> None:
    """Bring every dimension of vectors (N, K, D) to mean 0 and variance 1, in place.

    Others are moved and scaled by the same numbers. A probe stays linear by that, and learns
    faster.
    """
    for layer in range(vectors.shape[1]):
        std, mean = torch.std_mean(vectors[:, layer].float(), 0, correction=0)
        for array in (vectors, *others):
            for some in torch.split(array, _AT_ONCE):
                some[:, layer] = (some[:, layer].float() - mean) / std.clamp_min(1e-6)


def train_probe(
    vectors: Tensor,
    tags: Tensor,
    held_out: Tensor,
    n_tags: int,
    *,
    mixed: bool = False,
    seed: int = 0,
    settings: ProbeSettings | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> LinearProbe:
    """A probe trained on some tokens and stopped where it is best on the others.

    Args:
        vectors: (N, K, D), standardised, in any precision.
        tags: (N,), numbers below n_tags.
        held_out: (N,), True for tokens that decide when to stop.
        n_tags: How many tags there are.
        mixed: As for :class:`LinearProbe`.
        seed: Of the order of tokens.
        settings: How to train.
        advance: Told of each round that is done, and at the end of all that were not needed.
    """
    settings = settings or ProbeSettings()
    shuffle = torch.Generator().manual_seed(seed)
    seen, others = (~held_out).nonzero()[:, 0], held_out.nonzero()[:, 0]
    probe = LinearProbe(vectors.shape[1], vectors.shape[2], n_tags, mixed).to(vectors.device)
    optimizer = _optimizer(probe, settings)
    best, best_state, waited = -1.0, probe.state_dict(), 0
    steps = -(-len(seen) // settings.batch_size)  # of a pass
    left = settings.most_rounds
    while left:
        orders = [
            torch.randperm(len(seen), generator=shuffle)
            for _ in range(-(-settings.least_steps // steps))
        ]
        batches = [some for order in orders for some in torch.split(order, settings.batch_size)]
        for some in (seen[batch.to(seen.device)] for batch in batches):
            loss = F.cross_entropy(probe(vectors[some]), tags[some])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        left -= 1
        advance(1)
        right = probe.accuracy(vectors[others], tags[others])
        if right > best:
            best, best_state, waited = right, copy.deepcopy(probe.state_dict()), 0
            continue
        waited += 1
        if waited == settings.patience:
            break
        for group in optimizer.param_groups:
            group["lr"] /= 2
    advance(left)
    probe.load_state_dict(best_state)
    return probe


def _optimizer(probe: LinearProbe, settings: ProbeSettings) -> torch.optim.Optimizer:
    """AdamW; the layer's weights alone are drawn to zero, not its bias or the mix."""
    free = [p for name, p in probe.named_parameters() if name != "linear.weight"]
    groups = [
        {"params": [probe.linear.weight], "weight_decay": settings.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate)
