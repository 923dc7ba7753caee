"""The checkpoint that a run resumes from: one file for all processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from elmokit.errors import FormatError, InputError, shortened
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.objective.evaluation_plan import MOST_TOKENS
from elmokit.pretrain.objective.network import States
from elmokit.pretrain.objective.optimizers import load_optimizers
from elmokit.pretrain.processes import Process
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.tally import Progress


class RunCheckpoint:
    """The checkpoint of one run.

    Args:
        folder: The run's folder.
        process: This process among those that train together.
        train: The training text.
        valid: The validation text.
    """

    def __init__(self, folder: RunFolder, process: Process, train: Corpus, valid: Corpus) -> None:
        self._folder, self._process = folder, process
        self._texts = {"training": train.digest, "validation": valid.digest}

    def save(
        self,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        progress: Progress,
        judged: dict[str, float],
        states: States | None,
    ) -> None:
        """Write one file with everything that all processes need.

        Args:
            model: The model.
            optimizers: Its optimizers.
            progress: The run's progress.
            judged: The state of the :class:`~elmokit.pretrain.objective.step_judge.StepJudge`.
            states: The state that this process's next batch starts from, if it is carried.
        """
        processes = self._process.gather(self._own_state(states))
        if self._process.is_first:
            self._folder.save(
                {
                    "model": model.state_dict(),
                    "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                    "progress": asdict(progress),
                    "watched": judged,
                    "texts": self._texts,
                    "processes": processes,
                }
            )

    def _own_state(self, states: States | None) -> dict[str, Any]:
        """Return what differs between processes, on the CPU."""
        device = self._process.device
        return {
            "states": states and [(h.cpu(), c.cpu()) for h, c in states],
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        }

    def load(
        self,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        carried: Sequence[tuple[int, ...]],
    ) -> tuple[Progress, dict[str, float], States | None]:
        """Restore weights, optimizers and random number generators.

        Args:
            model: The model.
            optimizers: Its optimizers.
            carried: Shapes of h and c of each layer; empty if states are not carried on.

        Returns:
            The progress, the state of the step judge, and this process's carried states.
        """
        state, device = self._folder.load(), self._process.device
        self._check_same(state)
        source = self._folder.checkpoint
        try:
            own = state["processes"][self._process.rank]
            model.load_state_dict(state["model"])
            load_optimizers(optimizers, state["optimizers"])
            progress = Progress.checked(state["progress"])
            if "valid_tokens" not in state["progress"]:  # an older version evaluated on this many
                progress.valid_tokens = MOST_TOKENS
            watched = state["watched"]
            judged = {
                "skipped": int(watched["skipped"]),
                "usual": float(watched["usual"]),
                "rate": float(watched["rate"]),
            }
            states = own["states"] and [(h.to(device), c.to(device)) for h, c in own["states"]]
            if any([tuple(t.shape) for t in state] != list(carried) for state in states or ()):
                raise ValueError("it carries states of another size")
            torch.set_rng_state(own["rng"])
            if own["cuda_rng"] is not None and device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda_rng"], device)
        except Exception as error:  # PyTorch checks some of it, by all kinds of errors
            reason = shortened(str(error).split("\n")[0])
            raise FormatError(
                f"the checkpoint {source} does not match this run: {reason}"
            ) from error
        if not all(value.isfinite().all() for value in model.state_dict().values()):
            raise FormatError(
                f"the checkpoint {source} has NaN or infinite weights; start a new run with a "
                "lower learning rate"
            )
        return progress, judged, states

    def _check_same(self, state: dict[str, Any]) -> None:
        """Raise if the text or the number of processes differs from the checkpoint's."""
        # old checkpoints lack "texts"
        before = state.get("texts", self._texts)
        if before != self._texts:
            changed = [
                name
                for name, text in self._texts.items()
                if not isinstance(before, dict) or before.get(name) != text
            ]
            raise InputError(
                f"the {' and the '.join(changed)} text has changed since the run was stopped; use "
                "the same text, or start a new run from this model with init_from="
            )
        processes, now = state.get("processes"), self._process.size
        if isinstance(processes, list) and len(processes) != now:
            raise InputError(
                f"the run was stopped with {len(processes)} processes and cannot resume with "
                f"{now}; start as many as before (torchrun --nproc-per-node), or start a new run "
                "from this model with init_from="
            )
