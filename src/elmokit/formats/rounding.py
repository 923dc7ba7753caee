"""Weights stored in fewer bits, for smaller files; reading converts them back to float32."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from elmokit.arguments import one_of
from elmokit.errors import FormatError, shortened
from elmokit.formats.checkpoint import SOFTMAX

DTYPES = ("float32", "float16", "int8", "int4")
"""Precisions in which a model can be saved."""
StoredKind = tuple[str, tuple[int, ...]]
"""Type and shape of a tensor in a file."""
_SCALE = ".scale"
_FLOATS = ("F64", "F32", "F16", "BF16")
_GROUP = 64  # columns that share one scale, in four bits
# Shares of the full scale to try. A smaller scale clips the largest value but rounds the others
# more finely. With 7/8, the largest value is stored as -8.
_SHARES = (1.0, 7 / 8, 0.8, 0.7)


def rounded(tensors: dict[str, Tensor], dtype: str) -> dict[str, Tensor]:
    """Round weights for storage.

    Args:
        tensors: Weights by name.
        dtype: float32 (unchanged), float16, int8 (matrices with one scale per row, the rest in
            float16), or int4 (as int8, but the softmax in four bits; rounding the softmax does not
            affect vectors).
    """
    one_of(dtype, "dtype", DTYPES)
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        whole = tensor.detach().cpu().float().contiguous()
        if dtype == "float32":
            stored[name] = whole
        elif dtype == "float16" or whole.dim() < 2:
            stored[name] = whole.half()
        elif dtype == "int4" and name.startswith(SOFTMAX) and whole.shape[1] % 2 == 0:
            stored[name], stored[name + _SCALE] = _four_bits(whole)
        else:
            stored[name], stored[name + _SCALE] = _eight_bits(whole)
    return stored


def restored_shapes(stored: Mapping[str, StoredKind], source: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes that :func:`restored` will give; raise if types or scales do not fit.

    Args:
        stored: Type, by its name in safetensors, and shape of each stored tensor.
        source: The file, for errors.
    """
    whole = {}
    for name, (dtype, shape) in stored.items():
        if name.endswith(_SCALE):
            continue
        scale_dtype, scale = stored.get(name + _SCALE, ("F32", None))
        if scale is None:
            fits = dtype in _FLOATS
        elif dtype == "U8":
            fits = len(shape) == len(scale) == 2 and shape[0] == scale[0]
            fits = fits and scale[1] > 0 and 2 * shape[1] % scale[1] == 0
            shape = (shape[0], 2 * shape[1]) if fits else shape
        else:
            fits = dtype == "I8" and bool(shape) and scale == shape[:1]
        if not fits or scale_dtype not in _FLOATS:
            raise FormatError(
                f"{source}: {shortened(name)} has the type {shortened(dtype)} or scales that no "
                "version of ElmoKit writes; copy the model again"
            )
        whole[name] = shape
    return whole


def restored(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert stored weights back to float32; the inverse of :func:`rounded`."""
    whole = {}
    for name, tensor in tensors.items():
        if name.endswith(_SCALE):
            continue
        scale = tensors.get(name + _SCALE)
        if scale is None:
            whole[name] = tensor.float()
        elif tensor.dtype == torch.uint8:
            whole[name] = _from_four_bits(tensor, scale)
        else:
            whole[name] = tensor * scale.float().view(-1, *[1] * (tensor.dim() - 1))
    return whole


def _eight_bits(whole: Tensor) -> tuple[Tensor, Tensor]:
    rows = whole.flatten(1)
    scale = rows.abs().amax(1).clamp_min(1e-12) / 127
    return (rows / scale[:, None]).round().to(torch.int8).view(whole.shape), scale


def _four_bits(whole: Tensor) -> tuple[Tensor, Tensor]:
    """Round a matrix (N, D) to integers from -8 to 7.

    Returns:
        Pairs of integers (N, D / 2) and scales (N, groups).
    """
    n, width = whole.shape
    groups = whole.view(n, -1, _GROUP if width % _GROUP == 0 else width)
    largest = groups.abs().amax(-1, keepdim=True).clamp_min(1e-6) / 7  # stays in float16's range
    best = torch.full_like(largest, torch.inf)
    scale = largest
    for share in _SHARES:
        tried = (largest * share).half().float()
        error = ((groups / tried).round().clamp(-8, 7) * tried - groups).square()
        error = error.sum(-1, keepdim=True)
        scale = torch.where(error < best, tried, scale)
        best = torch.minimum(best, error)
    numbers = ((groups / scale).round().clamp(-8, 7) + 8).to(torch.uint8).view(n, -1)
    return numbers[:, ::2] | numbers[:, 1::2] << 4, scale.squeeze(-1).half()


def _from_four_bits(pairs: Tensor, scale: Tensor) -> Tensor:
    numbers = torch.stack([pairs & 15, pairs >> 4], -1).float() - 8
    return (numbers.view(*scale.shape, -1) * scale.float()[..., None]).flatten(1)
