"""The training loop: steps, reports, evaluations, and stopping well."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.errors import ElmoKitError
from elmokit.formats import native, read_model
from elmokit.formats.checkpoint import Checkpoint
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.feed import Feed, ModelBatch
from elmokit.pretrain.data.training_batches import (
    Batches,
    SentenceBatches,
    Share,
    StreamBatches,
    one_after_another,
)
from elmokit.pretrain.objective.evaluate import Evaluation, evaluate
from elmokit.pretrain.objective.network import PretrainModel, States
from elmokit.pretrain.objective.optimizers import (
    clip_gradients,
    make_optimizers,
    rate_at,
    take_step,
)
from elmokit.pretrain.processes import Process
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.reporter import Reporter
from elmokit.pretrain.run.resume_point import RunCheckpoint
from elmokit.pretrain.run.stopwatch import Stopwatch, gpu_busy
from elmokit.pretrain.run.tally import Pace, Progress, Since

_REPORT_SECONDS = 10.0
_VALID_TOKENS = 200_000  # of the validation text looked at during training; all of it at the end
_MOST_SKIPPED = 10  # steps in a row that cannot be taken before training gives up
_EXPLODED = 3.0  # times the loss of guessing
_JUMP = 100  # times the usual norm of the gradients; with Muon, clipping them changes nothing
_NEW = 0.02  # share of a step in what is usual


class TrainingError(ElmoKitError):
    """The loss is not a number, again and again."""


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
        self._kept = RunCheckpoint(folder, process, train, valid)
        settings, device = recipe.training, process.device
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
        assert recipe.optimizer.learning_rate is not None  # start.py fills it in
        self._rate = recipe.optimizer.learning_rate
        self.optimizers = make_optimizers(self.model, recipe.optimizer, self._rate)
        plan = make_batches(recipe, train, Share(process.rank, process.size))
        self._per_epoch = plan.n_batches(0)
        self._train = Feed(
            train, plan, base, recipe.softmax, settings.seed, device, settings.recased
        )
        plan = one_after_another(valid, recipe.batch.tokens)
        self._valid = Feed(valid, plan, base, recipe.softmax, settings.seed, device)
        self._states: States | None = None
        self._skipped = self._most_skipped = torch.zeros((), dtype=torch.long, device=device)
        self._usual = torch.zeros((), device=device)  # norm of the gradients; 0 at first
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
        with _stopping_well(self._stop), closing(self._all_batches()) as batches:
            next_evaluation = self._next(self._done())
            since, clock = Since(self.progress), time.perf_counter()
            pace = Pace(self.progress, self.recipe.training.minutes)
            watch: Stopwatch | None = None
            for batch in batches:
                if watch is not None:
                    watch.mark("data")
                since.add(*self._step(batch, watch))
                if watch is not None:
                    since.shares, watch = watch.shares(), None
                self.progress.seconds += time.perf_counter() - clock
                stop = self._agree()
                pace.step()
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
                    self.save(stop or finished)
                elif stop or self._time_to_save():
                    self.save(stop)
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
        told = torch.tensor([self.progress.seconds, float(stop)], dtype=torch.float64)
        self.progress.seconds, stop = self.process.from_first(told).tolist()
        return bool(stop)

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
        n_steps = self._n_steps() or self.progress.expected or None
        rate = rate_at(self.progress.step, n_steps, done, self._rate, self.recipe.optimizer)
        for group in (g for optimizer in self.optimizers for g in optimizer.param_groups):
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
        each = self.process.sum(sums.detach()) / batch.total
        guess = math.log(len(self.vocabulary))
        usable = torch.isfinite(norm) & (each.mean() < _EXPLODED * guess)
        size = norm / self.recipe.optimizer.loss_scale
        usable &= (self._usual == 0) | (size < _JUMP * self._usual)
        # what is usual rises slowly, as it would else follow gradients that grow and grow
        usual = self._usual.lerp(torch.minimum(size, 2 * self._usual), _NEW)
        usual = torch.where(self._usual == 0, size, usual)
        self._usual = torch.where(usable, usual, self._usual)
        take_step(self.optimizers, usable)
        self._states = [(torch.where(usable, h, 0), torch.where(usable, c, 0)) for h, c in states]
        self._skipped = torch.where(usable, 0, self._skipped + 1)
        self._most_skipped = torch.maximum(self._most_skipped, self._skipped)
        self.model.zero_grad(set_to_none=True)
        if watch is not None:
            watch.mark("optimizer")
        self.progress.tokens += batch.total
        return each, norm, usable

    def _check(self) -> None:
        """Stop where step after step could not be taken; this waits for a GPU."""
        if int(self._most_skipped) >= _MOST_SKIPPED:
            raise TrainingError(
                "the loss or the gradient was not finite, the loss many times that of guessing, "
                f"or the gradient {_JUMP} times as large as it had been, "
                f"{int(self._most_skipped)} times in a row, up to step "
                f"{self.progress.step}; the last good checkpoint is {self.folder.checkpoint}: use "
                "--resume with a lower learning rate, as --set optimizer.learning_rate="
                f"{self._rate / 4:g}"
            )

    # Looking

    def _report(self, since: Since, reporter: Reporter) -> None:
        if not self.process.is_first:
            return
        values = since.values() | {
            "epoch": self.progress.epoch + self.progress.batch / self._per_epoch,
            "learning_rate": self.optimizers[0].param_groups[0]["lr"],
            "done": self._done(),
            "sampled": self.model.sampled,
        }
        if (busy := gpu_busy(self.process.device)) is not None:
            values["gpu_busy"] = busy
        self.folder.report(kind="training", step=self.progress.step, **values)
        reporter.training(self.progress.step, values)

    def _evaluate(self, reporter: Reporter, max_tokens: int | None) -> Evaluation | None:
        """Perplexity on the validation text; the best model so far is kept."""
        if not self.process.is_first:
            return None
        with torch.autocast(self.process.device.type, torch.bfloat16, enabled=self._autocast):
            found = evaluate(self.model, self._valid, max_tokens, progress=False)
        values = found.values()
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

    def save(self, leaving: bool) -> None:
        """Write where training can go on.

        Not in the middle of steps that are left out, unless this is the last chance: the weights
        may be to blame, and those kept before are better.
        """
        if int(self._skipped) and not leaving:
            return
        self._saved_at = self.progress.seconds
        carried = self._states if self.recipe.batch.order != "sentences" else None
        watched = {
            "skipped": int(self._skipped),
            "usual": float(self._usual),
            "rate": self._rate,
        }
        self._kept.save(self.model, self.optimizers, self.progress, watched, carried)

    def resume(self) -> None:
        """Go on from the last checkpoint."""
        self.progress, watched, self._states = self._kept.load(self.model, self.optimizers)
        if watched["rate"] == self._rate:  # else it is another try
            self._skipped = self._skipped + int(watched["skipped"])
            self._usual = self._usual + watched["usual"]
        self._saved_at = self.progress.seconds
        if self.process.is_first:
            self.folder.forget_after(self.progress.step)

    _saved_at = 0.0

    def _time_to_save(self) -> bool:
        every = 60 * self.recipe.training.save_every
        return self.progress.seconds - self._saved_at >= every


@contextmanager
def _stopping_well(told: threading.Event) -> Iterator[None]:
    """While inside, Ctrl-C means to save and leave, and once more, to leave at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        if told.is_set():
            raise KeyboardInterrupt
        told.set()

    before = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_batches(recipe: Recipe, corpus: Corpus, share: Share) -> Batches:
    """The batches a recipe asks for."""
    settings, seed = recipe.batch, recipe.training.seed
    if settings.order == "sentences":
        return SentenceBatches(corpus, settings.tokens, seed, settings.max_length, share)
    rows = max(1, settings.tokens // settings.steps)
    return StreamBatches(corpus, rows, settings.steps, seed, settings.order == "documents", share)
