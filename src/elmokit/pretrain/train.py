"""The training loop: steps, reports, evaluations, checkpoints, and stopping well."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from elmokit.data.batches import (
    Batches,
    SentenceBatches,
    Share,
    StreamBatches,
    one_after_another,
)
from elmokit.data.corpus import Corpus
from elmokit.errors import ConfigError, ElmoKitError, FormatError, InputError
from elmokit.formats import native, read_model
from elmokit.formats.checkpoint import Checkpoint
from elmokit.pretrain.evaluate import Evaluation, evaluate
from elmokit.pretrain.feed import Feed, ModelBatch
from elmokit.pretrain.model import PretrainModel, States
from elmokit.pretrain.optimizer import (
    clip_gradients,
    load_optimizer,
    make_optimizer,
    rate_at,
    take_step,
)
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.reports import Reporter
from elmokit.pretrain.run_folder import RunFolder
from elmokit.pretrain.stopwatch import Stopwatch
from elmokit.pretrain.tally import Progress, Since

_REPORT_SECONDS = 10.0
_VALID_TOKENS = 200_000  # of the validation text looked at during training; all of it at the end
_MOST_SKIPPED = 10  # steps in a row that cannot be taken before training gives up
_EXPLODED = 3.0  # times the loss of guessing


class TrainingError(ElmoKitError):
    """The loss is not a number, again and again."""


@dataclass(frozen=True)
class Process:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether it is the one that writes."""
        return self.rank == 0


class Trainer:
    """One training run.

    Args:
        recipe: All settings.
        base: Sizes and vocabulary of the model, and the weights to start from, if any.
        train: The text to train on.
        valid: The text to evaluate on.
        folder: Where the run is kept.
        process: This process among others.
    """

    def __init__(
        self,
        recipe: Recipe,
        base: Checkpoint,
        train: Corpus,
        valid: Corpus,
        folder: RunFolder,
        process: Process,
    ) -> None:
        self.recipe, self.config = recipe, base.config
        self._base = replace(base, tensors={})
        self.vocabulary = base.vocabulary or []
        self.folder, self.process, self.progress = folder, process, Progress()
        self._digest = train.digest
        settings, device = recipe.training, process.device
        if self.config.context.kind == "lstm" and not self.config.context.has_projection:
            raise ConfigError(
                "training needs a context.projection_dim that differs from context.cell_dim"
            )
        torch.manual_seed(settings.seed)
        self.model = PretrainModel(self.config, recipe.softmax, settings.dropout)
        self.model.load(base.tensors)
        self.model.to(device).train()
        torch.manual_seed(settings.seed + 1 + process.rank)  # dropout differs between processes
        self._runs: nn.Module = self.model
        if process.size > 1:
            # a cluster of rare words may have no target in a step, and so no gradient to wait for
            rare = recipe.softmax.kind == "adaptive"
            self._runs = nn.parallel.DistributedDataParallel(
                self.model, find_unused_parameters=rare
            )
        self.optimizer = make_optimizer(self.model, recipe.optimizer)
        plan = make_batches(recipe, train, Share(process.rank, process.size))
        self._per_epoch = plan.n_batches(0)
        self._train = Feed(train, plan, base, recipe.softmax, settings.seed, device)
        plan = one_after_another(valid, recipe.batch.tokens)
        self._valid = Feed(valid, plan, base, recipe.softmax, settings.seed, device)
        self._states: States | None = None
        self._skipped = self._most_skipped = torch.zeros((), dtype=torch.long, device=device)
        precision = settings.precision
        if precision == "auto":
            precision = "bfloat16" if device.type == "cuda" else "float32"
        self._autocast = precision == "bfloat16"
        self._stop = threading.Event()

    def close(self) -> None:
        """Let go of what is shared with the other processes, while their group still exists.

        What PyTorch keeps of the group would otherwise be freed with the trainer, by a thread that
        holds Python's lock and waits for another, which may be waiting for that lock.
        """
        self._runs = self.model

    # Running

    def run(self, reporter: Reporter) -> Evaluation | None:
        """Train to the end, or until told to stop.

        Returns:
            How good the best model is; None if the end was not reached.
        """
        # closed at the end, as a loader's processes must not be left to themselves
        with self._stopping_well(), closing(self._all_batches()) as batches:
            next_evaluation = self._next(self._done())
            since, clock = Since(self.progress), time.perf_counter()
            watch: Stopwatch | None = None
            for batch in batches:
                if watch is not None:
                    watch.mark("data")
                since.add(*self._step(batch, watch))
                if watch is not None:
                    since.shares, watch = watch.shares(), None
                self.progress.seconds += time.perf_counter() - clock
                stop = self._agree()
                finished = self._done() >= 1
                report = since.seconds() >= _REPORT_SECONDS or stop or finished
                if report or self.process.device.type == "cpu":
                    self._check()
                if report:
                    self._report(since, reporter)
                    since = Since(self.progress)
                if finished or self._done() >= next_evaluation:
                    self._evaluate(reporter, _VALID_TOKENS)
                    next_evaluation = self._next(self._done())
                    self.save()
                elif stop or self._time_to_save():
                    self.save()
                if finished or stop:
                    break
                clock = time.perf_counter()
                if since.wants_shares():
                    watch = Stopwatch(self.process.device)
        return self._finish(reporter) if self._done() >= 1 else None

    def _finish(self, reporter: Reporter) -> Evaluation | None:
        """The best model on the whole of the validation text."""
        if self.process.is_first and self.folder.best.is_dir():
            self.model.load(read_model(self.folder.best).tensors)
        return self._evaluate(reporter, None)

    def _agree(self) -> bool:
        """Whether to stop; all processes go by the first one's clock and signals."""
        stop = self._stop.is_set()
        if self.process.size > 1:
            told = torch.tensor([self.progress.seconds, float(stop)], dtype=torch.float64)
            told = told.to(self.process.device)
            dist.broadcast(told, 0)
            self.progress.seconds, stop = float(told[0]), bool(told[1])
        return stop

    def stop(self) -> None:
        """Save and leave after the step under way."""
        self._stop.set()

    def _done(self) -> float:
        """Share of the run behind us."""
        minutes, n_steps = self.recipe.training.minutes, self._n_steps()
        if n_steps is None:
            return self.progress.seconds / (60 * (minutes or 1))
        return self.progress.step / n_steps

    def _n_steps(self) -> int | None:
        """Steps of the whole run; None where time ends it."""
        settings = self.recipe.training
        if settings.minutes is not None:
            return None
        return max(1, round(settings.epochs * self._per_epoch))

    def _next(self, done: float) -> float:
        every = self.recipe.training.evaluate_every
        return (math.floor(done / every + 1e-9) + 1) * every

    def _all_batches(self) -> Generator[ModelBatch, None, None]:
        """Batches from where the run stands, epoch after epoch, as long as there is work to do."""
        while self._done() < 1:
            now = self.progress
            with closing(self._train.batches(now.epoch, now.batch, now.step)) as batches:
                for batch in batches:
                    self.progress.batch += 1
                    self.progress.step += 1
                    yield batch
            self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0

    def _step(
        self, batch: ModelBatch, watch: Stopwatch | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One step: loss a token (2,), norm of the gradient, and whether it was taken.

        Nothing here waits for a GPU, which has work for some steps ahead that way.
        """
        done = self._done()
        softmax = self.recipe.softmax
        self.model.sampled = softmax.kind == "sampled" and done < softmax.full_from
        rate = rate_at(self.progress.step, self._n_steps(), done, self.recipe.optimizer)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if not batch.carried:
            self._states = None
        with torch.autocast(self.process.device.type, torch.bfloat16, enabled=self._autocast):
            sums, states = self._runs(batch, self._train.table, self._states, watch)
        loss = sums.mean() / batch.total
        # gradients are averaged over processes, but the sum over all tokens is what is meant
        (loss * (self.process.size * self.recipe.optimizer.loss_scale)).backward()
        if watch is not None:
            watch.mark("token encoder")
        norm = clip_gradients(self.model, self.recipe.optimizer.clip_norm)
        each = _over_all(sums.detach(), self.process) / batch.total
        guess = math.log(len(self.vocabulary))
        usable = torch.isfinite(norm) & (each.mean() < _EXPLODED * guess)
        take_step(self.optimizer, usable)
        self._states = [(torch.where(usable, h, 0), torch.where(usable, c, 0)) for h, c in states]
        self._skipped = torch.where(usable, 0, self._skipped + 1)
        self._most_skipped = torch.maximum(self._most_skipped, self._skipped)
        self.optimizer.zero_grad(set_to_none=True)
        if watch is not None:
            watch.mark("optimizer")
        self.progress.tokens += batch.total
        return each, norm, usable

    def _check(self) -> None:
        """Stop where step after step could not be taken; this waits for a GPU."""
        if int(self._most_skipped) >= _MOST_SKIPPED:
            raise TrainingError(
                "the loss or the gradient was not finite, or the loss many times that of "
                f"guessing, {int(self._most_skipped)} times in a row, up to step "
                f"{self.progress.step}; the last good checkpoint is {self.folder.checkpoint}: use "
                "--resume with a lower learning rate, as --set optimizer.learning_rate="
                f"{self.recipe.optimizer.learning_rate / 4:g}"
            )

    # Looking

    def _report(self, since: Since, reporter: Reporter) -> None:
        if not self.process.is_first:
            return
        values = since.values() | {
            "epoch": self.progress.epoch + self.progress.batch / self._per_epoch,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "done": self._done(),
        }
        self.folder.report(kind="training", step=self.progress.step, **values)
        reporter.training(self.progress.step, values)

    def _evaluate(self, reporter: Reporter, max_tokens: int | None) -> Evaluation | None:
        """Perplexity on the validation text; the best model so far is kept."""
        if not self.process.is_first:
            return None
        with torch.autocast(self.process.device.type, torch.bfloat16, enabled=self._autocast):
            found = evaluate(self.model, self._valid, max_tokens, progress=False)
        values = asdict(found)
        self.folder.report(
            kind="evaluation",
            step=self.progress.step,
            seconds=self.progress.seconds,
            tokens=self.progress.tokens,
            whole=max_tokens is None,
            **values,
        )
        reporter.evaluation(self.progress.step, values)
        if max_tokens is not None and found.mean <= self.progress.best:
            self.progress.best = found.mean
            native.write(self.checkpoint(), self.folder.best, overwrite=True)
        return found

    # Keeping

    def checkpoint(self) -> Checkpoint:
        """The model as it is now, ready to be written in any format."""
        return replace(self._base, tensors=self.model.tensors())

    def save(self) -> None:
        """Write where training can go on, what every process needs in one file."""
        self._saved_at = self.progress.seconds
        processes = self._gather(self._own_state())
        if self.process.is_first:
            self.folder.save(
                {
                    "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                    "progress": asdict(self.progress),
                    "skipped": int(self._skipped),
                    "text": self._digest,
                    "processes": processes,
                }
            )

    def _own_state(self) -> dict[str, Any]:
        """What differs between processes, on the CPU."""
        device, carried = self.process.device, self.recipe.batch.order != "sentences"
        states = self._states if carried else None
        return {
            "states": states and [(h.cpu(), c.cpu()) for h, c in states],
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        }

    def _gather(self, own: dict[str, Any]) -> list[Any]:
        """The states of all processes, for the first one."""
        found: list[Any] = [own] * self.process.size
        if self.process.size > 1:
            dist.gather_object(own, found if self.process.is_first else None)
        return found

    def resume(self) -> None:
        """Go on from the last checkpoint."""
        state = self.folder.load()
        self._check_same(state)
        try:
            own = state["processes"][self.process.rank]
            self.model.load_state_dict(state["model"])
            load_optimizer(self.optimizer, state["optimizer"])
            self.progress = Progress(**state["progress"])
            self._skipped = self._skipped + state["skipped"]
            states = own["states"]
            torch.set_rng_state(own["rng"])
            if own["cuda_rng"] is not None and self.process.device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda_rng"], self.process.device)
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).split("\n")[0]
            raise FormatError(
                f"the checkpoint {self.folder.checkpoint} does not fit this run: {reason}"
            ) from error
        to = self.process.device
        self._states = None if states is None else [(h.to(to), c.to(to)) for h, c in states]
        self._saved_at = self.progress.seconds
        if self.process.is_first:
            self.folder.forget_after(self.progress.step)

    def _check_same(self, state: dict[str, Any]) -> None:
        """Raise where text or processes are not those of a checkpoint."""
        if state.get("text") != self._digest:
            raise InputError(
                "the text is not what it was when the run was stopped; give the same text, or "
                "begin a new run, with --init-from if it is to go on from this one's model"
            )
        processes, now = state.get("processes"), self.process.size
        if processes is not None and len(processes) != now:
            raise InputError(
                f"the number of processes was {len(processes)} when the run was stopped and is "
                f"{now} now; start as many as before (torchrun --nproc-per-node), or begin a new "
                "run with --init-from"
            )

    _saved_at = 0.0

    def _time_to_save(self) -> bool:
        every = 60 * self.recipe.training.save_every
        return self.progress.seconds - self._saved_at >= every

    @contextmanager
    def _stopping_well(self) -> Iterator[None]:
        """While inside, Ctrl-C means to save and leave, and once more, to leave at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: Any) -> None:
            if self._stop.is_set():
                raise KeyboardInterrupt
            self._stop.set()

        before = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _over_all(sums: Tensor, process: Process) -> Tensor:
    """The sum over all processes."""
    if process.size > 1:
        dist.all_reduce(sums)
    return sums


def make_batches(recipe: Recipe, corpus: Corpus, share: Share) -> Batches:
    """The batches a recipe asks for."""
    settings, seed = recipe.batch, recipe.training.seed
    if settings.order == "sentences":
        return SentenceBatches(corpus, settings.tokens, seed, settings.max_length, share)
    rows = max(1, settings.tokens // settings.steps)
    return StreamBatches(corpus, rows, settings.steps, seed, settings.order == "documents", share)
