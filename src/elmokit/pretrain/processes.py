"""The processes that train together, as torchrun starts them, and how they communicate."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from elmokit.devices import choose_device
from elmokit.errors import InputError

_TIMEOUT = datetime.timedelta(hours=2)


@dataclass(frozen=True)
class Process:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes get here."""
        if self.size > 1:
            dist.barrier()

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def from_first(self, values: Tensor) -> Tensor:
        """Return the first process's values, given on the CPU; does not wait for a GPU."""
        if self.size > 1:
            dist.broadcast(values, 0)
        return values

    def gather(self, own: Any) -> list[Any]:
        """Return the objects of all processes, in the first process."""
        found: list[Any] = [own] * self.size
        if self.size > 1:
            dist.gather_object(own, found if self.is_first else None)
        return found


@contextmanager
def joined(device: str | None) -> Iterator[Process]:
    """Join the other processes if torchrun started several."""
    # batches differ in size; without this, the allocator would reserve memory again and again
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    size = _number("WORLD_SIZE", 1)
    if size <= 1:
        yield Process(device=choose_device(device))
        return
    needed = ("RANK", "MASTER_ADDR", "MASTER_PORT")
    if missing := [name for name in needed if not os.environ.get(name)]:
        raise InputError(
            f"the environment sets WORLD_SIZE={size}, but not {' and '.join(missing)}; start all "
            "processes with torchrun, or unset WORLD_SIZE to train in one process"
        )
    rank, local = _number("RANK", 0), _number("LOCAL_RANK", 0)
    chosen = choose_device(device)
    backend = "gloo"
    if chosen.type == "cuda":
        if local >= torch.cuda.device_count():
            raise InputError(
                f"process {local} of this machine has no GPU of its own: only "
                f"{torch.cuda.device_count()} available; start that many with torchrun "
                "--nproc-per-node"
            )
        chosen = torch.device("cuda", local)
        torch.cuda.set_device(chosen)
        backend = "cpu:gloo,cuda:nccl"  # CPU tensors are sent without waiting for the GPU
    # DistributedDataParallel imports this module, whose functions keep the process group of that
    # moment as a default. Imported here, while there is none yet, it does not keep ours: its
    # threads would outlive destroy_process_group and could abort the process as Python ends.
    import_module("torch.distributed.nn.functional")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        dist.init_process_group(
            backend, store=_store_of_torchrun(), rank=rank, world_size=size, timeout=_TIMEOUT
        )
    else:
        dist.init_process_group(backend, timeout=_TIMEOUT)
    try:
        yield Process(rank, size, chosen)
    finally:
        dist.destroy_process_group()


def _store_of_torchrun() -> Any:
    """Where the processes find each other.

    torchrun keeps its store when it starts the processes again. Without a name of its own for each
    start, they would find the addresses of the dead ones there, and wait for them.
    """
    stores: Any = dist  # its stubs do not list them
    address, port = os.environ["MASTER_ADDR"], _number("MASTER_PORT", 0)
    store = stores.TCPStore(address, port, is_master=False, timeout=_TIMEOUT)
    return stores.PrefixStore(f"start-{_number('TORCHELASTIC_RESTART_COUNT', 0)}", store)


def were_restarted() -> bool:
    """Whether torchrun has started the processes again because one of them died."""
    return _number("TORCHELASTIC_RESTART_COUNT", 0) > 0


def _number(name: str, default: int) -> int:
    """Read a number that torchrun puts into the environment."""
    value = os.environ.get(name) or str(default)
    if not value.isdecimal():
        raise InputError(f"the environment sets {name}={value}; expected a number")
    return int(value)
