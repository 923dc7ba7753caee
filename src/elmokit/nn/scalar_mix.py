"""The weighted sum of layers for a task: γ · Σ softmax(w)_k · layer_k."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.arguments import each, flag, number, numbers, whole_number, wrong
from elmokit.errors import InputError, shortened

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
        if layer_norm is not False and layer_norm not in tuple(LAYER_NORMS):
            raise wrong("layer_norm", f"False or one of {', '.join(LAYER_NORMS)}", layer_norm)
        n_layers = whole_number(n_layers, "n_layers", 1, 10_000)
        trainable = flag(trainable, "trainable")
        given = [0.0] * n_layers if weights is None else numbers(weights, "weights")
        if len(given) != n_layers:
            raise wrong("weights", f"{n_layers} numbers, one per layer", weights)
        self.weights = nn.Parameter(torch.tensor(given), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.tensor(number(gamma, "gamma")), requires_grad=trainable)
        self.layer_norm = layer_norm
        self.l2 = number(l2, "l2", 0)

    def forward(self, layers: Tensor | Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix layers, each (…, T, D), into one of the same shape.

        Args:
            layers: All layers, as one tensor (L + 1, …, T, D) or as a list.
            mask: (…, T), True for real tokens; needed for layer normalisation only.
        """
        layers = _checked(layers, len(self.weights))
        if self.layer_norm:
            if not isinstance(mask, Tensor) or mask.shape != layers[0].shape[:-1]:
                raise InputError(
                    "layer normalisation needs a mask of real tokens; pass mask= of the shape "
                    f"{tuple(layers[0].shape[:-1])}"
                )
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


def _checked(layers: Tensor | Sequence[Tensor], n: int) -> Tensor | list[Tensor]:
    """The n layers, after a check of their type and shapes."""
    found: Tensor | list[Tensor]
    if isinstance(layers, Tensor):
        found = layers
    else:
        found = list(each(layers, "layers", "a tensor or a list of tensors"))
        if any(not isinstance(item, Tensor) or item.shape != found[0].shape for item in found):
            raise InputError("layers must be a tensor or a list of tensors of the same shape")
    if len(found) != n or found[0].dim() < 2:
        shapes = [tuple(item.shape) for item in found]
        raise InputError(f"layers must be {n} of the shape (…, T, D), not {shortened(str(shapes))}")
    return found
