"""PyTorch state dicts, read without running the code that a pickle may contain."""

from __future__ import annotations

import warnings
import zipfile
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import FormatError, shortened
from elmokit.formats.source import Source, own_errors
from elmokit.formats.tables import Stored

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class StateDict:
    """The tensors of a file that ``torch.save`` wrote.

    Args:
        source: The folder or archive.
        name: The file.
    """

    def __init__(self, source: Source, name: str) -> None:
        self.label, self._size = source.label(name), source.size(name)
        with (
            # PyTorch's own message may recommend weights_only=False, which runs any code
            own_errors(
                f"{self.label} is not a complete PyTorch file with tensors only",
                "download it again",
                quote=False,
            ),
            source.open(name) as file,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # about unusual tensors, which are refused below
            if file.read(4) == b"PK\3\4":  # not in the format before PyTorch 1.6
                with zipfile.ZipFile(file) as archive:
                    check_stored(archive, self._size)
            file.seek(0)
            stored = torch.load(file, map_location="cpu", weights_only=True)
        if not isinstance(stored, dict):
            raise FormatError(
                f"{self.label} contains a {type(stored).__name__}; expected a state dict"
            )
        self._stored: dict[Any, Any] = stored
        self._found: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """Names of all values."""
        return [name for name in self._stored if isinstance(name, str)]

    def get(self, name: str) -> Stored | None:
        """Return a tensor, or None if there is none of this name."""
        tensor = self._stored.get(name)
        if not isinstance(tensor, Tensor):
            return None
        is_plain = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested
        is_plain = is_plain and tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not is_plain or tensor.dtype not in _FLOATS:
            raise FormatError(
                f"{self.label}: {shortened(name)} is not a plain tensor of float numbers "
                f"({shortened(str(tensor.dtype))}); use a file of float32 weights"
            )
        # A pickle may declare tensors larger than their values, and PyTorch makes up the rest.
        self._found[name] = tensor.numel() * tensor.element_size()
        if sum(self._found.values()) > self._size:
            raise FormatError(
                f"{self.label}: {shortened(name)} declares {tensor.numel():,} values, more than "
                "the file has; download it again"
            )
        return Stored(tuple(tensor.shape), lambda: tensor.detach().float())


def check_stored(archive: zipfile.ZipFile, size: int) -> None:
    """Raise a ValueError if an archive has packed members, which ``torch.save`` never writes.

    Args:
        archive: The archive.
        size: Bytes of its file.
    """
    members = archive.infolist()
    if any(m.compress_type for m in members) or sum(m.file_size for m in members) > size:
        raise ValueError("packed members")
