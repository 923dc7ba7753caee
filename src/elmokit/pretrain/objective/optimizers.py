"""Following the gradients: optimizers, the rate over time, and steps that must not be taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.pretrain.objective.muon import Muon
from elmokit.pretrain.recipe import OptimizerSettings

_LOWEST = 0.01  # of the highest rate, at the end of a cosine


def make_optimizers(
    model: nn.Module, settings: OptimizerSettings, rate: float
) -> list[torch.optim.Optimizer]:
    """The optimizers of a model, each of some of its parameters.

    Muon is for matrices between hidden layers: neither embeddings, of which a step changes some
    rows alone, nor the softmax. Of what is left to AdamW, biases and embeddings are not pulled
    towards zero.
    """
    if settings.name == "adagrad":
        return [
            torch.optim.Adagrad(
                model.parameters(),
                rate,
                initial_accumulator_value=settings.accumulator,
            )
        ]
    named = dict(model.named_parameters())
    optimizers: list[torch.optim.Optimizer] = []
    if settings.name == "muon":
        names = [
            name
            for name, p in named.items()
            if p.dim() == 2 and not _is_embedding(name) and not name.startswith("softmax.")
        ]
        matrices = [named.pop(name) for name in names]
        optimizers.append(Muon(matrices, rate, settings.momentum, settings.weight_decay))
    kept_small = [p for name, p in named.items() if p.dim() > 1 and not _is_embedding(name)]
    others = [p for name, p in named.items() if p.dim() <= 1 or _is_embedding(name)]
    adamw = torch.optim.AdamW(
        [
            {"params": kept_small, "weight_decay": settings.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        rate,
        settings.betas,
        fused=others[0].is_cuda,
    )
    return [*optimizers, adamw]


def _is_embedding(name: str) -> bool:
    return "embedding" in name


def load_optimizers(
    optimizers: Sequence[torch.optim.Optimizer], states: Sequence[dict[str, Any]]
) -> None:
    """Take over what optimizers remember, but not their settings, which may have been changed."""
    for optimizer, state in zip(optimizers, states, strict=True):
        for old, new in zip(state["param_groups"], optimizer.param_groups, strict=False):
            old.update({key: value for key, value in new.items() if key != "params"})
        optimizer.load_state_dict(state)


def rate_at(
    step: int, n_steps: int | None, progress: float, highest: float, settings: OptimizerSettings
) -> float:
    """The learning rate.

    Args:
        step: The step to be taken, from 1.
        n_steps: Steps of the whole run, where they are known or can be guessed.
        progress: The share of the run that is done, 0 to 1; by the clock where that ends it. The
            rate must not rise by the clock, as the first steps take long and are few.
        highest: Where the rate rises to.
        settings: How it rises and falls.
    """
    warmup = settings.warmup if n_steps is None else min(settings.warmup, n_steps // 10)
    rate = highest * min(1.0, step / max(1, warmup))
    if settings.schedule == "constant":
        return rate
    share = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return rate * (_LOWEST + (1 - _LOWEST) * share)


def clip_gradients(model: nn.Module, max_norm: float) -> Tensor:
    """Scale all gradients so that their norm is at most this; returns the norm before."""
    return nn.utils.clip_grad_norm_(
        [p for p in model.parameters() if p.grad is not None], max_norm, foreach=True
    )


def take_step(optimizers: Sequence[torch.optim.Optimizer], usable: Tensor) -> None:
    """Follow the gradients if they are usable.

    On a GPU, Muon and fused optimizers are told, and leave the step out themselves, so that nobody
    waits; others wait for the answer.
    """
    for optimizer in optimizers:
        if usable.is_cuda and (isinstance(optimizer, Muon) or optimizer.defaults.get("fused")):
            # what GradScaler tells such optimizers: with it at 1, they leave everything as it is
            optimizer.found_inf = (~usable).float()  # type: ignore[attr-defined]
            optimizer.step()
        elif usable:
            optimizer.step()
