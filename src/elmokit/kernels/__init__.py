"""Faster ways to run stacks of nn/lstm.py, each equal to it within rounding, behind one choice."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache, partial
from types import ModuleType

import torch
from torch import Tensor

from elmokit.kernels import cpu, packed, softmax_torch
from elmokit.kernels.parallel import run_all
from elmokit.nn.lstm import ProjectedLSTM, State

_log = logging.getLogger(__name__)

_SIDE_BY_SIDE = 8
"""Sentences from which on both directions run at once on a CPU. A few are bound by reading the
weights, of which each core's cache holds more when all threads share every product."""

Stacks = Sequence[Sequence[ProjectedLSTM]]
"""The LSTMs of each direction; each reads the output of the one before."""


def run(
    stacks: Stacks,
    tokens: Tensor,
    lengths: Tensor,
    starts: Sequence[Sequence[State]] | None,
    skip: bool,
    outputs: Sequence[Sequence[Tensor]] | None,
) -> tuple[list[list[Tensor]], list[list[State]]]:
    """Run the LSTMs of all directions by the fastest way there is.

    Args:
        stacks: The LSTMs of each direction.
        tokens: Input (B, T, P) of the first.
        lengths: Tokens (B,) of each sentence; on the CPU, or a GPU is waited for.
        starts: The state each LSTM starts from; None for zeros.
        skip: Whether all but the first add their input to their output.
        outputs: Where the outputs (B, T, P) go, by direction and layer, without gradients; None to
            make room for them, with gradients.

    Returns:
        The outputs, zero behind each sentence's end, and the state each LSTM ends with.
    """
    steps = gpu_steps(tokens.device)
    if steps is not None and packed.can_run(stacks, tokens):
        with torch.cuda.device(tokens.device):  # Triton launches on the current one
            return packed.run(stacks, tokens, lengths, starts, skip, outputs, steps)
    by_direction = [None] * len(stacks) if starts is None else starts
    if outputs is not None and tokens.device.type == "cpu" and _is_float32(stacks, tokens):
        tasks = [
            partial(cpu.run_stack, stack, tokens, lengths, start, skip, places)
            for stack, start, places in zip(stacks, by_direction, outputs, strict=True)
        ]
        side_by_side = len(lengths) >= _SIDE_BY_SIDE
        finals = run_all(tasks, tokens.device) if side_by_side else [task() for task in tasks]
        return [list(places) for places in outputs], finals
    found, finals = [], []
    for stack, start in zip(stacks, by_direction, strict=True):
        layers, final = run_plain(stack, tokens, lengths.to(tokens.device), start, skip)
        found.append(layers)
        finals.append(final)
    for layers, places in zip(found, outputs or [], strict=False):
        for layer, place in zip(layers, places, strict=True):
            place.copy_(layer)
    return found, finals


def run_plain(
    stack: Sequence[ProjectedLSTM],
    tokens: Tensor,
    lengths: Tensor,
    starts: Sequence[State] | None,
    skip: bool,
) -> tuple[list[Tensor], list[State]]:
    """One direction by the LSTM's own step by step: outputs and final states."""
    x, outputs, finals = tokens, [], []
    for number, lstm in enumerate(stack):
        out, final = lstm(x, lengths, None if starts is None else starts[number])
        x = out + x if skip and number > 0 else out  # the residual skips the first layer
        outputs.append(x)
        finals.append(final)
    return outputs, finals


def _is_float32(stacks: Stacks, tokens: Tensor) -> bool:
    parameters = [p for stack in stacks for lstm in stack for p in lstm.parameters()]
    return all(t.dtype == torch.float32 for t in (tokens, *parameters)) and (
        not torch.is_autocast_enabled(tokens.device.type)
    )


@cache
def gpu_steps(device: torch.device) -> ModuleType | None:
    """The fused kernels, once they are known to work: they need a GPU, Triton and a C compiler."""
    if device.type != "cuda":
        return None
    try:
        from elmokit.kernels import steps_triton

        some = torch.ones(1, 1, 16, device=device)
        with torch.cuda.device(device):
            steps_triton.begin(some, some, some.new_empty(1, 1, 32), 1)
            cell = some[..., :4].contiguous()
            steps_triton.cell(some, some[0], cell, cell, torch.empty_like(cell), 3.0, 1, False)
    except torch.OutOfMemoryError:  # of the caller's making, and to be handled there
        raise
    except Exception as error:  # whatever it is, there is another way
        reason = str(error).strip().split("\n")[0]
        _log.warning(
            "ElmoKit's fused GPU kernels cannot run here (%s: %s), so that the plain path is used, "
            "which is several times slower",
            type(error).__name__,
            reason,
        )
        return None
    return steps_triton


def softmax_steps(device: torch.device) -> ModuleType:
    """What turns logits into losses and gradients: fused on a GPU where that works."""
    if gpu_steps(device) is None:
        return softmax_torch
    from elmokit.kernels import softmax_triton

    return softmax_triton
