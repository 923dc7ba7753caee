"""The training loop: steps, reports, evaluations and checkpoints."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

import torch
from torch import Tensor, nn

from elmokit.formats import native, read_model
from elmokit.formats.checkpoint import Checkpoint
from elmokit.inference.perplexity import Perplexity
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.feed import Feed, ModelBatch
from elmokit.pretrain.data.training_batches import Share, make_batches, one_after_another
from elmokit.pretrain.objective.evaluate import evaluate
from elmokit.pretrain.objective.network import PretrainModel, States
from elmokit.pretrain.objective.optimizers import (
    clip_gradients,
    make_optimizers,
    rate_at,
    take_step,
)
from elmokit.pretrain.objective.step_judge import StepJudge
from elmokit.pretrain.objective.stopwatch import Stopwatch, gpu_busy
from elmokit.pretrain.processes import Process
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.reporter import Reporter
from elmokit.pretrain.run.resume_point import RunCheckpoint
from elmokit.pretrain.run.stop_signal import stop_on_signal
from elmokit.pretrain.run.tally import Pace, Progress, Since

_REPORT_SECONDS = 10.0
_VALID_TOKENS = 200_000  # of the validation text, during training; at the end, all of it


class Trainer:
    """One training run.

    Args:
        recipe: A complete recipe.
        base: Sizes and vocabulary of the model, and the weights to start from, if any.
        train: The text to train on.
        valid: The text to evaluate on.
        folder: The run's folder.
        process: This process among those that train together.
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
            # a cluster of rare words may have no target in a step, and then no gradient
            rare = recipe.softmax.kind == "adaptive"
            self._runs = nn.parallel.DistributedDataParallel(
                self.model, find_unused_parameters=rare
            )
        assert recipe.optimizer.learning_rate is not None  # the recipe is complete
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
        self._judge = StepJudge(
            len(self.vocabulary), self._rate, recipe.optimizer.loss_scale, device
        )
        precision = settings.precision
        if precision == "auto":
            precision = "bfloat16" if device.type == "cuda" else "float32"
        self._autocast = precision == "bfloat16"
        self._stop, self._saved_at = threading.Event(), 0.0

    def close(self) -> None:
        """Release what is shared with other processes while their process group still exists.

        Otherwise PyTorch frees it together with the trainer, in a thread that holds Python's lock
        and waits for another thread, which may be waiting for that lock.
        """
        self._runs = self.model

    # Running

    def run(self, reporter: Reporter) -> Perplexity | None:
        """Train to the end of the run, or until it is stopped.

        Returns:
            Perplexity of the best model; None if the run was stopped.
        """
        # closing ends the processes of the data loader
        with stop_on_signal(self._stop), closing(self._all_batches()) as batches:
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
                    self._judge.check(self.progress.step)
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

    def _finish(self, reporter: Reporter) -> Perplexity | None:
        """Evaluate the best model on the whole validation text."""
        if self.process.is_first and self.folder.best.is_dir():
            self.model.load(read_model(self.folder.best).tensors)
        return self._evaluate(reporter, None)

    def _agree(self) -> bool:
        """Return whether to stop; the first process decides for all, and its clock counts."""
        stop = self._stop.is_set()
        own = torch.tensor([self.progress.seconds, float(stop)], dtype=torch.float64)
        self.progress.seconds, stop = self.process.from_first(own).tolist()
        return bool(stop)

    def stop(self) -> None:
        """Save and stop after the current step."""
        self._stop.set()

    def _done(self) -> float:
        """Return the fraction of the run that is done."""
        minutes, n_steps = self.recipe.training.minutes, self._n_steps()
        if n_steps is None:
            return self.progress.seconds / (60 * (minutes or 1))
        return self.progress.step / n_steps

    def _n_steps(self) -> int | None:
        """Return the steps of the whole run; None if the run has a time limit instead."""
        settings = self.recipe.training
        if settings.minutes is not None:
            return None
        return max(1, round(settings.epochs * self._per_epoch))

    def _next(self, done: float) -> float:
        """Return the fraction of the run at which to evaluate next."""
        every = self.recipe.training.evaluate_every
        return (math.floor(done / every + 1e-9) + 1) * every

    def _all_batches(self) -> Generator[ModelBatch, None, None]:
        """Yield batches from the current position to the end of the run."""
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
        """Take one step; return loss per token (2,), gradient norm, and whether it was taken.

        Nothing here waits for the GPU, so a few steps of work are always queued.
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
        # gradients are averaged over processes, but the sum over all tokens is needed
        (loss * (self.process.size * self.recipe.optimizer.loss_scale)).backward()
        if watch is not None:
            watch.mark("token encoder")
        norm = clip_gradients(self.model, self.recipe.optimizer.clip_norm)
        each = self.process.sum(sums.detach()) / batch.total
        usable = self._judge.judge(each, norm)
        take_step(self.optimizers, usable)
        self._states = [(torch.where(usable, h, 0), torch.where(usable, c, 0)) for h, c in states]
        self.model.zero_grad(set_to_none=True)
        if watch is not None:
            watch.mark("optimizer")
        self.progress.tokens += batch.total
        return each, norm, usable

    # Reporting

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

    def _evaluate(self, reporter: Reporter, max_tokens: int | None) -> Perplexity | None:
        """Compute the validation perplexity, and keep the model if it is the best so far."""
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

    # Saving

    def checkpoint(self) -> Checkpoint:
        """Return the current model, ready to write in any format."""
        return replace(self._base, tensors=self.model.tensors())

    def save(self, leaving: bool) -> None:
        """Write a checkpoint to resume from.

        While steps are being skipped, the previous checkpoint is kept, because the current weights
        may be the cause. When leaving, the checkpoint is always written.
        """
        if self._judge.skipping and not leaving:
            return
        self._saved_at = self.progress.seconds
        carried = self._states if self.recipe.batch.order != "sentences" else None
        self._kept.save(self.model, self.optimizers, self.progress, self._judge.state(), carried)

    def resume(self) -> None:
        """Continue from the last checkpoint."""
        self.progress, judged, self._states = self._kept.load(self.model, self.optimizers)
        self._judge.load_state(judged)
        self._saved_at = self.progress.seconds
        if self.process.is_first:
            self.folder.forget_after(self.progress.step)

    def _time_to_save(self) -> bool:
        every = 60 * self.recipe.training.save_every
        return self.progress.seconds - self._saved_at >= every
