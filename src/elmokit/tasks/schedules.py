"""Learning rates over a training, and which layers of the biLM learn when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from elmokit.nn.bilm import BiLM
from elmokit.tasks.task_settings import TaskSettings

_RISE = {"warmup": 0.1, "slanted": 0.05}  # share of all steps


def rate_factor(schedule: str, step: int, n_steps: int) -> float:
    """Return the factor on the peak learning rate for a step, counted from 0."""
    if schedule == "constant":
        return 1.0
    rise = max(1, round(_RISE[schedule] * n_steps))
    if step < rise:
        return (step + 1) / rise
    return max(0.01, (n_steps - step) / max(1, n_steps - rise))


def parameter_groups(
    network: nn.Module, bilm: BiLM | None, settings: TaskSettings[Any]
) -> list[dict[str, Any]]:
    """Return the groups of weights for the optimizer, each with its peak rate and first epoch."""
    training, tuning = settings.training, settings.tuning
    own = [p for p in network.parameters() if p.requires_grad]
    groups: list[dict[str, Any]] = [{"params": own, "peak": training.learning_rate, "from": 0}]
    if bilm is not None:
        rate = tuning.learning_rate
        for number, layer in enumerate(layers_from_the_top(bilm)):
            first = number if tuning.gradual else 0
            groups.append({"params": layer, "peak": rate, "from": first})
            rate *= tuning.decay
    return groups


def layers_from_the_top(bilm: BiLM) -> Iterator[list[nn.Parameter]]:
    """Yield the weights of each layer of a biLM, the top layer first, the token encoder last."""
    stacks = bilm.directions
    for number in reversed(range(bilm.config.context.n_layers)):
        yield [p for stack in stacks for p in stack[number].parameters()]
    yield [p for p in bilm.token_encoder.parameters() if p.requires_grad]
