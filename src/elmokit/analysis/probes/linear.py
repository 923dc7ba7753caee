"""A linear probe: one softmax layer on frozen vectors, trained with early stopping.

In PyTorch rather than scikit-learn, because it trains on a GPU, in float16, with a learned mix.
"""

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
    """Initial learning rate of AdamW; halved after every round without improvement."""
    weight_decay: float = 0.1
    batch_size: int = 1024
    least_steps: int = 50
    """A round is as many epochs as it takes for this many steps."""
    patience: int = 4
    """Training stops after this many rounds without improvement."""
    most_rounds: int = 40


class LinearProbe(nn.Module):
    """Predicts tags from the vectors of tokens.

    Args:
        n_layers: Layers K of a token's vectors.
        dim: Their width D.
        n_tags: Number of tags.
        mixed: Whether to mix the layers with learned weights; otherwise they are concatenated.
    """

    def __init__(self, n_layers: int, dim: int, n_tags: int, mixed: bool = False) -> None:
        super().__init__()
        self.mix = ScalarMix(n_layers) if mixed else None
        self.linear = nn.Linear(dim if mixed else n_layers * dim, n_tags)
        nn.init.zeros_(self.linear.weight)  # the loss is convex, so any start will do
        nn.init.zeros_(self.linear.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores (N, tags) of tokens (N, K, D), in any precision."""
        vectors = vectors.float()
        mixed = vectors.flatten(1) if self.mix is None else self.mix(vectors.transpose(0, 1))
        return self.linear(mixed)

    @torch.inference_mode()
    def predict(self, vectors: Tensor) -> Tensor:
        """Predict the tag (N,) of each token (N, K, D)."""
        return torch.cat([self(some).argmax(1) for some in torch.split(vectors, _AT_ONCE)])

    def accuracy(self, vectors: Tensor, tags: Tensor) -> float:
        """Accuracy in per cent on tokens (N, K, D) with tags (N,)."""
        return 100 * (self.predict(vectors) == tags).double().mean().item()

    def shares(self) -> list[float] | None:
        """Softmax weights of the mix; None without a mix."""
        return None if self.mix is None else torch.softmax(self.mix.weights, 0).tolist()


def standardise(vectors: Tensor, *others: Tensor) -> None:
    """Standardise every dimension of vectors (N, K, D) to mean 0 and variance 1, in place.

    Other arrays are shifted and scaled by the same numbers. The probe stays linear and learns
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
    """Train a probe, and return it as it was when most accurate on held-out tokens.

    Args:
        vectors: (N, K, D), standardised, in any precision.
        tags: (N,), numbers below n_tags.
        held_out: (N,), True for tokens used for early stopping.
        n_tags: Number of tags.
        mixed: As for :class:`LinearProbe`.
        seed: Seed of the order of tokens.
        settings: Training settings.
        advance: Called with 1 after each round, and at the end with the number of rounds skipped.
    """
    settings = settings or ProbeSettings()
    shuffle = torch.Generator().manual_seed(seed)
    seen, others = (~held_out).nonzero()[:, 0], held_out.nonzero()[:, 0]
    probe = LinearProbe(vectors.shape[1], vectors.shape[2], n_tags, mixed).to(vectors.device)
    optimizer = _optimizer(probe, settings)
    best, best_state, waited = -1.0, probe.state_dict(), 0
    steps = -(-len(seen) // settings.batch_size)  # per epoch
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
    """AdamW; weight decay applies to the linear weights, not to the bias or the mix."""
    free = [p for name, p in probe.named_parameters() if name != "linear.weight"]
    groups = [
        {"params": [probe.linear.weight], "weight_decay": settings.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate)
