"""PyTorch state dicts, read without running the code that a pickle may contain."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable

import torch
from torch import Tensor

from elmokit.errors import FormatError, shortened
from elmokit.formats.source import Source, own_errors
from elmokit.formats.tables import Stored

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def state_dict(source: Source, name: str) -> Callable[[str], Stored | None]:
    """Read a file that ``torch.save`` wrote; the result finds its tensors by name.

    Args:
        source: The folder or archive.
        name: The file.
    """
    label, size = source.label(name), source.size(name)
    with (
        # PyTorch's own message may recommend weights_only=False, which runs any code
        own_errors(
            f"{label} is not a complete PyTorch file with tensors only",
            "download it again",
            quote=False,
        ),
        source.open(name) as file,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # about unusual tensors, which are refused below
        if file.read(4) == b"PK\3\4":  # not in the format before PyTorch 1.6
            with zipfile.ZipFile(file) as archive:
                check_stored(archive, size)
        file.seek(0)
        stored = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(stored, dict):
        raise FormatError(f"{label} contains a {type(stored).__name__}; expected a state dict")
    found: dict[str, int] = {}

    def find(name: str) -> Stored | None:
        tensor = stored.get(name)
        if not isinstance(tensor, Tensor):
            return None
        is_plain = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested
        is_plain = is_plain and tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not is_plain or tensor.dtype not in _FLOATS:
            raise FormatError(
                f"{label}: {name} is not a plain tensor of float numbers "
                f"({shortened(str(tensor.dtype))}); use a file of float32 weights"
            )
        # A pickle may declare tensors larger than their values, and PyTorch makes up the rest.
        found[name] = tensor.numel() * tensor.element_size()
        if sum(found.values()) > size:
            raise FormatError(
                f"{label}: {name} declares {tensor.numel():,} values, more than the file has; "
                "download it again"
            )
        return Stored(tuple(tensor.shape), lambda: tensor.detach().float())

    return find


def check_stored(archive: zipfile.ZipFile, size: int) -> None:
    """Raise a ValueError if an archive has packed members, which ``torch.save`` never writes.

    Args:
        archive: The archive.
        size: Bytes of its file.
    """
    members = archive.infolist()
    if any(m.compress_type for m in members) or sum(m.file_size for m in members) > size:
        raise ValueError("packed members")
