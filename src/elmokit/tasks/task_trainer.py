"""The one training loop of all tasks: epochs, early stopping, stopping and resuming."""

from __future__ import annotations

import copy
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from elmokit.devices import is_out_of_memory
from elmokit.errors import FormatError, InputError, OutputError, TrainingError
from elmokit.io.atomic import (
    clear_errors,
    new_file,
    remove_leftovers,
    remove_path,
    write_text,
)
from elmokit.io.lock import lock_folder
from elmokit.io.progress import DelayedProgress, clock_time
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.pretrain.run.stop_signal import StopSignal
from elmokit.tasks import saved
from elmokit.tasks.frozen_layers import FrozenLayers
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.schedules import parameter_groups, rate_factor
from elmokit.tasks.word_batches import Batcher, Prepared, sentences_of, shuffled

if TYPE_CHECKING:
    from elmokit.tasks.task import Task

_GB = 1_000_000_000


@dataclass(frozen=True)
class TaskRun:
    """Where a training keeps its files, and what it shows."""

    folder: Path | None = None
    """Folder of the training; None keeps nothing on disk."""
    resume: bool = False
    """Whether to continue the training in the folder."""
    layers: FrozenLayers | None = None
    """Where to keep ELMo's layers; None for a place of its own."""
    progress: bool = True
    """Whether to show progress."""

    @property
    def best(self) -> Path | None:
        """The best model so far."""
        return None if self.folder is None else self.folder / "best"


@dataclass
class Progress:
    """How far a training is."""

    epoch: int = 0
    """Epochs that are finished."""
    best_epoch: int = 0
    best_score: float = -math.inf
    history: list[dict[str, float]] = field(default_factory=list)
    """Loss, dev score and seconds of each epoch."""


def train_task(
    task: Task[Any, Any],
    train: Sequence[Any],
    dev: Sequence[Any],
    run: TaskRun,
    say: Callable[[str], None],
) -> None:
    """Train a task model; afterwards it has the weights of its best epoch.

    Ctrl-C and SIGTERM raise KeyboardInterrupt after the current step; the best model so far and a
    checkpoint are in the folder.

    Args:
        task: The model.
        train: Examples to learn from.
        dev: Examples that choose the best epoch.
        run: Where to keep the model and a checkpoint.
        say: Called with each line of progress.
    """
    # finds mistakes before a folder exists
    prepared = list(map(task.prepare, train)), list(map(task.prepare, dev))
    with ExitStack() as stack:
        checksum = None
        if run.folder is not None:
            checksum = task.elmo.checkpoint().checksum()
            _open_folder(run, _fingerprint(task, checksum, train, dev))
            stack.enter_context(lock_folder(run.folder, run.folder))
            _remove_leftovers(run.folder)
        signal = stack.enter_context(StopSignal(say))
        training = _Training(task, *prepared, run, checksum, say, signal)
        if run.layers is None:
            stack.enter_context(training.layers)
        training.prepare()
        with signal.after_the_step():
            training.run_epochs()
        training.finish()
        if signal.asked:
            raise KeyboardInterrupt


class _Training:
    def __init__(
        self,
        task: Task[Any, Any],
        train: Sequence[Prepared],
        dev: Sequence[Prepared],
        run: TaskRun,
        checksum: str | None,
        say: Callable[[str], None],
        signal: StopSignal,
    ) -> None:
        self.task, self.dev, self.run = task, dev, run
        self.train = [piece for item in train for piece in task.pieces(item, learning=True)]
        self.n_train = len(train)
        self.say, self.signal, self.settings = say, signal, task.settings
        self.tuned = (
            ElmoEmbedding(task.elmo, trainable=True) if self.settings.tuning.enabled else None
        )
        self.checksum = None if self.tuned else checksum  # it changes as the biLM learns
        limit = 0 if self.tuned else round(self.settings.training.cache_gb * _GB)
        self.layers = run.layers or FrozenLayers(task.elmo, task.input.layers, limit, run.folder)
        bilm = task.elmo.bilm if self.tuned else None
        self.groups = parameter_groups(task.network, bilm, self.settings)
        training = self.settings.training
        self.optimizer = torch.optim.AdamW(
            self.groups, lr=training.learning_rate, weight_decay=training.weight_decay
        )
        self.progress = Progress()
        self.best: dict[str, Tensor] = {}
        self.lengths = [item.length for item in self.train]

    def prepare(self) -> None:
        """Resume, or compute ELMo's layers of all examples."""
        if self.run.resume:
            self._resume()
        if self.task.input.layers and not self.tuned and not self._is_over():
            sentences = sentences_of([*self.train, *self.dev])
            self.layers.keep(sentences, self.say, progress=self.run.progress)

    def run_epochs(self) -> None:
        """Train until the last epoch, until patience ends, or until asked to stop."""
        while not self._is_over() and not self.signal.asked:
            started = time.monotonic()
            what = f"epoch {self.progress.epoch + 1}"
            n, show = len(self.train), self.run.progress
            with DelayedProgress(what, n, "examples", show) as bar:
                loss = self._epoch(bar)
            if loss is None:
                return
            self._evaluate(loss, started)
        if self._waited() >= self.settings.training.patience:
            self.say(f"no better score for {self._waited()} epochs")

    def _waited(self) -> int:
        """Epochs since the best one."""
        return self.progress.epoch - self.progress.best_epoch

    def _is_over(self) -> bool:
        """Whether all epochs are done, or patience has ended."""
        training, epoch = self.settings.training, self.progress.epoch
        return epoch >= training.epochs or (epoch > 0 and self._waited() >= training.patience)

    def _epoch(self, bar: DelayedProgress) -> float | None:
        """Train for an epoch; return its mean loss, or None if asked to stop."""
        task, training, epoch = self.task, self.settings.training, self.progress.epoch
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.requires_grad_(epoch >= group["from"])
        batcher = Batcher(task.input, self.layers, self.tuned, task.elmo.device)
        batches = shuffled(self.train, self.lengths, training.batch_size, training.seed, epoch)
        rng = random.Random(f"{training.seed} {epoch} portions")
        total, n = 0.0, 0
        portions = ([task.portion(item, rng) for item in whole] for whole in batches)
        upcoming = next(portions)
        batch = batcher.make(upcoming)
        for number in range(len(batches)):
            examples = [item.example for item in upcoming]
            step = epoch * len(batches) + number
            factor = rate_factor(training.schedule, step, training.epochs * len(batches))
            for group in self.optimizer.param_groups:
                group["lr"] = group["peak"] * factor if epoch >= group["from"] else 0.0
            task.network.train()
            loss = task.loss(task.forward(batch), examples)
            self.optimizer.zero_grad()
            torch.autograd.backward(loss + task.input.penalty())
            learning = [p for g in self.groups for p in g["params"] if p.grad is not None]
            clipped = torch.nn.utils.clip_grad_norm_(learning, training.clip_norm)
            self.optimizer.step()
            if number + 1 < len(batches):  # made before the loss is read, while a GPU computes it
                upcoming = next(portions)
                batch = batcher.make(upcoming)
            value, norm = torch.stack([loss.detach(), clipped]).tolist()
            if not (math.isfinite(value) and math.isfinite(norm)):
                raise TrainingError(
                    f"training diverged in epoch {epoch + 1}: the loss is {value}, its gradient "
                    f"{norm}; choose a lower training.learning_rate"
                )
            total, n = total + value * len(examples), n + len(examples)
            bar.advance(len(examples))
            if self.signal.asked:
                return None
        return total / n

    def _evaluate(self, loss: float, started: float) -> None:
        """Score the dev examples, keep the best model, and write a checkpoint."""
        task, progress = self.task, self.progress
        predictions = task.predict_prepared(
            self.dev, self.layers, tuned=self.tuned, progress=self.run.progress
        )
        scores = task.score([item.example for item in self.dev], predictions)
        progress.epoch += 1
        better = scores.value > progress.best_score
        seconds = time.monotonic() - started
        progress.history.append({"loss": loss, "dev": scores.value, "seconds": seconds})
        left = (self.settings.training.epochs - progress.epoch) * seconds
        self.say(
            f"epoch {progress.epoch}: loss {loss:.4f}, dev {scores.name} {scores.value:.2f}"
            f"{' (best)' if better else ''}, {seconds:.1f} s, at most {clock_time(left)} left"
        )
        if better:
            progress.best_epoch, progress.best_score = progress.epoch, scores.value
            self.best = copy.deepcopy(self._weights())
            task.about = self._about(scores)
            if self.run.best is not None:
                saved.write(task, self.run.best, True, self.checksum)
        self._checkpoint()

    def finish(self) -> None:
        """Give the model the weights of its best epoch."""
        if not self.progress.best_epoch:
            self.say("stopped in the first epoch: there is no model to keep yet")
            raise KeyboardInterrupt
        if not self.best:  # resumed, and no later epoch was better
            assert self.run.best is not None
            elmo = self.task.elmo
            loaded = type(self.task).load(
                self.run.best, elmo=None if self.tuned else elmo, device=elmo.device
            )
            self.task.network.load_state_dict(loaded.network.state_dict())
            if self.tuned:
                elmo.bilm.load_state_dict(loaded.elmo.bilm.state_dict())
            self.task.about = loaded.about
        else:
            self._load_weights(self.best)
        self.task.network.eval()
        if self.tuned:
            self.task.elmo.bilm.requires_grad_(False)
        where = "" if self.run.best is None else f"; the model is {self.run.best}"
        stopped = ""
        if self.signal.asked:
            stopped = " so far" + ("; continue with resume=True" if self.run.folder else "")
        name = self.task.about["dev"]["measure"]
        self.say(
            f"dev {name} {self.progress.best_score:.2f} in epoch {self.progress.best_epoch}"
            f"{stopped}{where}"
        )

    def _about(self, scores: Scores) -> dict[str, Any]:
        mixes = self.task.input.shares()
        return {
            "dev": {
                "measure": scores.name,
                "value": scores.value,
                "n": scores.n,
                "unit": scores.unit,
            },
            "train": self.n_train,
            "epoch": self.progress.epoch,
            "mixes": mixes,
        }

    def _weights(self) -> dict[str, Tensor]:
        found = {f"network.{k}": v for k, v in self.task.network.state_dict().items()}
        if self.tuned:
            found |= {f"bilm.{k}": v for k, v in self.task.elmo.bilm.state_dict().items()}
        return {name: tensor.detach() for name, tensor in found.items()}

    def _load_weights(self, weights: dict[str, Tensor]) -> None:
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "bilm": {}}
        for name, tensor in weights.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        self.task.network.load_state_dict(parts["network"])
        if self.tuned:
            self.task.elmo.bilm.load_state_dict(parts["bilm"])

    def _checkpoint(self) -> None:
        if self.run.folder is None:
            return
        device = self.task.elmo.device
        values = {
            "weights": self._weights(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
            "progress": vars(self.progress),
        }
        path = self.run.folder / "checkpoint.pt"
        with new_file(path, temporary=path.with_suffix(".new")) as new:
            torch.save(values, new)

    def _resume(self) -> None:
        assert self.run.folder is not None
        path = self.run.folder / "checkpoint.pt"
        if not path.exists():  # stopped before the end of the first epoch
            return
        try:
            values = torch.load(path, map_location=self.task.elmo.device, weights_only=True)
            self._load_weights(values["weights"])
            self.optimizer.load_state_dict(values["optimizer"])
            torch.set_rng_state(values["random"].cpu())
            device = self.task.elmo.device
            if values["random_gpu"] is not None and device.type == "cuda":
                torch.cuda.set_rng_state(values["random_gpu"].cpu(), device)
            self.progress = Progress(**values["progress"])
        except Exception as error:  # torch has many ways to say that a file is damaged
            if is_out_of_memory(error):
                raise
            raise FormatError(
                f"{path} is damaged ({type(error).__name__}); delete {self.run.folder} and train "
                "again"
            ) from error
        self.say(f"resuming after epoch {self.progress.epoch}")


def _open_folder(run: TaskRun, fingerprint: str) -> None:
    """Create the folder of a training, or check that it belongs to the training to resume."""
    assert run.folder is not None
    path = run.folder / "training.json"
    if run.resume:
        try:
            begun = json.loads(path.read_text(encoding="utf-8"))["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{run.folder} has no training to resume; leave out resume=True"
            ) from None
        if begun != fingerprint:
            raise InputError(
                f"the training in {run.folder} has other examples or settings; resume it with the "
                "same ones, or choose another folder"
            )
        return
    if run.folder.is_file():
        raise OutputError(f"cannot write into {run.folder}: it is a file; choose another folder")
    if run.folder.exists() and any(run.folder.iterdir()):
        raise OutputError(
            f"{run.folder} is not empty; choose another folder, or continue with resume=True"
        )
    with clear_errors(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"fingerprint": fingerprint}) + "\n")


def _remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left: layers, and models that were being saved."""
    for left in folder.glob("elmokit-*"):
        remove_path(left)
    # without a best model, a process was killed between two renames: one of them is the best
    if (folder / "best").exists() or not (folder / "checkpoint.pt").exists():
        remove_leftovers(folder / "best")


def _fingerprint(
    task: Task[Any, Any], checksum: str, train: Sequence[Any], dev: Sequence[Any]
) -> str:
    """Identify a training: examples, settings, biLM (by its checksum) and static vectors."""
    digest = sha256(json.dumps(task.settings.to_dict(), sort_keys=True).encode())
    digest.update(f"{checksum} {task.elmo.tokenizer.name}".encode())
    if (static := task.input.static) is not None:
        digest.update("\n".join(static.words).encode("utf-8", "surrogatepass"))
        digest.update(static.known().cpu().numpy().tobytes())
    for examples in (train, dev):
        for example in examples:
            digest.update(repr(example).encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()
