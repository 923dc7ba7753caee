"""Choosing the fused Triton kernels where they work."""

from __future__ import annotations

import logging
from functools import cache
from types import ModuleType

import torch

from elmokit.kernels import softmax_torch

_log = logging.getLogger(__name__)


@cache
def gpu_steps(device: torch.device) -> ModuleType | None:
    """The fused LSTM kernels, or None without a GPU, Triton or a C compiler.

    They are tried once on a tiny input, because Triton compiles them at first use.
    """
    if device.type != "cuda":
        return None
    try:
        from elmokit.kernels import steps_triton

        some = torch.ones(1, 1, 16, device=device)
        with torch.cuda.device(device):
            steps_triton.begin(some, some, some.new_empty(1, 1, 32), 1)
            cell = some[..., :4].contiguous()
            steps_triton.cell(some, some[0], cell, cell, torch.empty_like(cell), 3.0, 1, False)
    except torch.OutOfMemoryError:  # the caller used the memory, and handles this
        raise
    except Exception as error:  # whatever it is, the PyTorch path still works
        reason = str(error).strip().split("\n")[0]
        _log.warning(
            "ElmoKit's fused GPU kernels cannot run here (%s: %s); using the plain PyTorch path, "
            "which is several times slower",
            type(error).__name__,
            reason,
        )
        return None
    return steps_triton


def softmax_steps(device: torch.device) -> ModuleType:
    """The module that turns logits into losses and gradients: fused on a GPU if that works."""
    if gpu_steps(device) is None:
        return softmax_torch
    from elmokit.kernels import softmax_triton

    return softmax_triton
