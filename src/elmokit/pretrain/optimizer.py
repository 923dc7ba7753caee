"""Following the gradients: optimizers, the rate over time, and steps that must not be taken."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from elmokit.pretrain.recipe import OptimizerSettings

_LOWEST = 0.01  # of the highest rate, at the end of a cosine


def make_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimizer of a model; biases and embeddings are not pulled towards zero."""
    if settings.name == "adagrad":
        return torch.optim.Adagrad(
            model.parameters(),
            settings.learning_rate,
            initial_accumulator_value=settings.accumulator,
        )
    named = list(model.named_parameters())
    kept_small = [p for name, p in named if p.dim() > 1 and "embedding" not in name]
    others = [p for name, p in named if p.dim() <= 1 or "embedding" in name]
    groups = [
        {"params": kept_small, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, settings.learning_rate, settings.betas, fused=named[0][1].is_cuda
    )


def rate_at(progress: float, settings: OptimizerSettings) -> float:
    """The learning rate at a point of the run, 0 to 1."""
    progress = min(1.0, progress)
    if progress < settings.warmup:
        return settings.learning_rate * progress / settings.warmup
    if settings.schedule == "constant":
        return settings.learning_rate
    rest = (progress - settings.warmup) / (1 - settings.warmup)
    share = _LOWEST + (1 - _LOWEST) * 0.5 * (1 + math.cos(math.pi * rest))
    return settings.learning_rate * share


def clip_gradients(model: nn.Module, max_norm: float) -> Tensor:
    """Scale all gradients so that their norm is at most this; returns the norm before."""
    return nn.utils.clip_grad_norm_(
        [p for p in model.parameters() if p.grad is not None], max_norm, foreach=True
    )


def take_step(optimizer: torch.optim.Optimizer, usable: Tensor) -> None:
    """Follow the gradients if they are usable; only a GPU's own optimizer finds out unwatched."""
    if optimizer.defaults.get("fused"):
        # what GradScaler tells such optimizers: with it at 1, they leave everything as it is
        optimizer.found_inf = (~usable).float()  # type: ignore[attr-defined]
        optimizer.step()
    elif usable:
        optimizer.step()
