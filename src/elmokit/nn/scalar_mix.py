"""The weighted sum of layers for a task: γ · Σ softmax(w)_k · layer_k."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.errors import ConfigError

LAYER_NORMS = {"bilm-tf": 1e-12, "allennlp": 1e-13}
"""The two published variants of layer normalisation, with the epsilon added to the variance."""


class ScalarMix(nn.Module):
    """A learned or fixed weighted sum of layers.

    Args:
        n_layers: The number of layers, including the token layer.
        weights: Initial weights before the softmax; None for zeros, which gives equal shares.
        gamma: The initial scale.
        trainable: Whether the weights and the scale are learned.
        layer_norm: False, "bilm-tf" or "allennlp". The latter two first normalise each layer with
            one mean and one variance over all real tokens of the batch, so a vector depends on its
            batch. They differ in the epsilon, and in whether sentence marks count, which the
            caller's mask decides.
        l2: The coefficient of the squared weights in :meth:`penalty`.
    """

    def __init__(
        self,
        n_layers: int,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        trainable: bool = True,
        layer_norm: str | bool = False,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        if layer_norm is not False and layer_norm not in LAYER_NORMS:
            raise ConfigError(
                f"layer_norm must be False or one of {', '.join(LAYER_NORMS)}, not {layer_norm!r}"
            )
        if weights is not None and len(weights) != n_layers:
            raise ConfigError(f"{n_layers} layers need {n_layers} weights, not {len(weights)}")
        start = torch.zeros(n_layers) if weights is None else torch.tensor(list(weights))
        self.weights = nn.Parameter(start.float(), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=trainable)
        self.layer_norm = layer_norm
        self.l2 = l2

    def forward(self, layers: Tensor | Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix layers, each (…, T, D), into one of the same shape.

        Args:
            layers: All layers, as one tensor (L + 1, …, T, D) or as a list.
            mask: (…, T), True for real tokens; needed for layer normalisation only.
        """
        if len(layers) != len(self.weights):
            raise ConfigError(f"this mix needs {len(self.weights)} layers, not {len(layers)}")
        if self.layer_norm:
            if mask is None:
                raise ConfigError("layer normalisation needs a mask of real tokens; pass mask=")
            layers = [self._normalise(layer, mask) for layer in layers]
        stacked = layers if isinstance(layers, Tensor) else torch.stack(list(layers))
        return torch.tensordot(self.gamma * torch.softmax(self.weights, 0), stacked, 1)

    def penalty(self) -> Tensor:
        """l2 · Σ w², a term to add to the loss of the task."""
        return self.l2 * (self.weights**2).sum()

    def _normalise(self, layer: Tensor, mask: Tensor) -> Tensor:
        real = mask.unsqueeze(-1).to(layer.dtype)
        n = real.sum() * layer.shape[-1]
        mean = (layer * real).sum() / n
        variance = (((layer - mean) * real) ** 2).sum() / n
        return (layer - mean) / torch.sqrt(variance + LAYER_NORMS[str(self.layer_norm)])
