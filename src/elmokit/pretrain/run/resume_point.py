"""Where a run can go on: written by all processes into one file, and read back by each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from elmokit.errors import FormatError, InputError
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.objective.network import States
from elmokit.pretrain.objective.optimizers import load_optimizers
from elmokit.pretrain.processes import Process
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.tally import Progress


class RunCheckpoint:
    """The checkpoint of one run.

    Args:
        folder: Where it is kept.
        process: This process among others.
        train: The text trained on.
        valid: The text evaluated on.
    """

    def __init__(self, folder: RunFolder, process: Process, train: Corpus, valid: Corpus) -> None:
        self._folder, self._process = folder, process
        self._texts = {"training": train.digest, "validation": valid.digest}

    def save(
        self,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        progress: Progress,
        watched: dict[str, float],
        states: States | None,
    ) -> None:
        """Write what every process needs in one file.

        Args:
            model: Its weights.
            optimizers: What they remember.
            progress: Where the run stands.
            watched: What steps are judged by: how many in a row were not taken, the usual norm of
                the gradients, and the learning rate these belong to.
            states: What this process's next batch starts from, where it is carried.
        """
        processes = self._process.gather(self._own_state(states))
        if self._process.is_first:
            self._folder.save(
                {
                    "model": model.state_dict(),
                    "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                    "progress": asdict(progress),
                    "watched": watched,
                    "texts": self._texts,
                    "processes": processes,
                }
            )

    def _own_state(self, states: States | None) -> dict[str, Any]:
        """What differs between processes, on the CPU."""
        device = self._process.device
        return {
            "states": states and [(h.cpu(), c.cpu()) for h, c in states],
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        }

    def load(
        self, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]
    ) -> tuple[Progress, dict[str, float], States | None]:
        """Take over weights, memory and random numbers.

        Returns:
            Where the run stood, what steps are judged by, and this process's carried states.
        """
        state, device = self._folder.load(), self._process.device
        self._check_same(state)
        try:
            own = state["processes"][self._process.rank]
            model.load_state_dict(state["model"])
            load_optimizers(optimizers, state["optimizers"])
            progress, watched = Progress(**state["progress"]), dict(state["watched"])
            states = own["states"] and [(h.to(device), c.to(device)) for h, c in own["states"]]
            torch.set_rng_state(own["rng"])
            if own["cuda_rng"] is not None and device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda_rng"], device)
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).split("\n")[0]
            raise FormatError(
                f"the checkpoint {self._folder.checkpoint} does not fit this run: {reason}"
            ) from error
        return progress, watched, states

    def _check_same(self, state: dict[str, Any]) -> None:
        """Raise where text or processes are not those of a checkpoint."""
        # checkpoints of before texts were compared have none
        before = state.get("texts", self._texts)
        if changed := [name for name, text in self._texts.items() if before.get(name) != text]:
            raise InputError(
                f"the {' and the '.join(changed)} text is not what it was when the run was "
                "stopped; give the same text, or begin a new run, with --init-from if it is to go "
                "on from this one's model"
            )
        processes, now = state.get("processes"), self._process.size
        if processes is not None and len(processes) != now:
            raise InputError(
                f"the number of processes was {len(processes)} when the run was stopped and is "
                f"{now} now; start as many as before (torchrun --nproc-per-node), or begin a new "
                "run with --init-from"
            )
