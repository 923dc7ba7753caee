"""Devices and their memory."""

import torch

from elmokit.devices import available_bytes


def test_memory_that_pytorch_keeps_is_free(monkeypatch):
    """Of the GPU's free memory, PyTorch may hold most for tensors to come."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 800)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 300)
    assert available_bytes(torch.device("cuda")) == 600
