"""Optimizers, the learning-rate schedule, and steps that are skipped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.formats.checkpoint import SOFTMAX
from elmokit.pretrain.objective.muon import Muon
from elmokit.pretrain.recipe_sections import OptimizerSettings

_LOWEST = 0.01  # final learning rate of the cosine schedule, relative to the peak
_SHORT_WARMUP = 5  # steps, or half of a shorter run: the first steps of Adam are its largest


def make_optimizers(
    model: nn.Module, settings: OptimizerSettings, rate: float
) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a model, each for some of its parameters.

    Muon is for matrices between hidden layers: neither for embeddings, of which a step changes only
    some rows, nor for the softmax. AdamW takes the rest, without weight decay for biases and
    embeddings.
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
            if p.dim() == 2 and not _is_embedding(name) and not name.startswith(SOFTMAX)
        ]
        matrices = [named.pop(name) for name in names]
        optimizers.append(Muon(matrices, rate, settings.momentum, settings.weight_decay))
    decayed = [p for name, p in named.items() if p.dim() > 1 and not _is_embedding(name)]
    others = [p for name, p in named.items() if p.dim() <= 1 or _is_embedding(name)]
    adamw = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": settings.weight_decay},
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
    """Restore the state of optimizers, but not their settings, which may have changed."""
    for optimizer, state in zip(optimizers, states, strict=True):
        for old, new in zip(state["param_groups"], optimizer.param_groups, strict=False):
            old.update({key: value for key, value in new.items() if key != "params"})
        optimizer.load_state_dict(state)
        for parameter, kept in optimizer.state.items():
            sizes = {v.shape for v in kept.values() if isinstance(v, Tensor) and v.dim()}
            if not sizes <= {parameter.shape}:
                raise ValueError("the optimizer belongs to another model")


def rate_at(
    step: int, n_steps: int | None, progress: float, highest: float, settings: OptimizerSettings
) -> float:
    """Return the learning rate of a step.

    Args:
        step: The step about to be taken, from 1.
        n_steps: Steps of the whole run, if known or estimated.
        progress: Fraction of the run that is done, 0 to 1, by time if the run has a time limit.
            Warm-up counts steps instead, because the first few steps take long.
        highest: The peak learning rate.
        settings: Warm-up and decay.
    """
    warmup = settings.warmup
    if n_steps is not None:
        warmup = min(warmup, max(n_steps // 10, min(_SHORT_WARMUP, n_steps // 2)))
    rate = highest * min(1.0, step / max(1, warmup))
    if settings.schedule == "constant":
        return rate
    share = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return rate * (_LOWEST + (1 - _LOWEST) * share)


def clip_gradients(model: nn.Module, max_norm: float) -> Tensor:
    """Scale all gradients to a total norm of at most max_norm; return the norm before."""
    return nn.utils.clip_grad_norm_(
        [p for p in model.parameters() if p.grad is not None], max_norm, foreach=True
    )


def take_step(optimizers: Sequence[torch.optim.Optimizer], usable: Tensor) -> None:
    """Take an optimizer step if the gradients are usable.

    On a GPU, Muon and fused optimizers read ``usable`` on the device and skip the step themselves;
    other optimizers have to wait for the GPU.
    """
    for optimizer in optimizers:
        if usable.is_cuda and (isinstance(optimizer, Muon) or optimizer.defaults.get("fused")):
            # as GradScaler does: with found_inf at 1, these optimizers change nothing
            optimizer.found_inf = (~usable).float()  # type: ignore[attr-defined]
            optimizer.step()
        elif usable:
            optimizer.step()
