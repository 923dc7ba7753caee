"""The training loop: steps, reports, evaluations and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

import torch
from torch import Tensor, nn

from elmokit.errors import TrainingError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.inference.perplexity import Perplexity
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.feed import Feed, ModelBatch
from elmokit.pretrain.data.training_batches import Share, make_batches
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
from elmokit.pretrain.run.length import RunLength
from elmokit.pretrain.run.reporter import Reporter
from elmokit.pretrain.run.resume_point import RunCheckpoint
from elmokit.pretrain.run.stop_signal import StopSignal
from elmokit.pretrain.run.tally import Pace, Progress, Since
from elmokit.pretrain.validation import Validation

_REPORT_SECONDS = 10.0


class Trainer:
    """One training run.

    Args:
        recipe: A complete recipe.
        base: Sizes and vocabulary of the model, and the weights to start from, if any.
        train: The text to train on.
        valid: The text to evaluate on.
        folder: The run's folder.
        process: This process among those that train together.
        signal: Says when to stop.
        tuned: Whether the run starts from a model. That model is evaluated too, and stays the best
            until training finds a better one.
    """

    def __init__(
        self,
        recipe: Recipe,
        base: Checkpoint,
        train: Corpus,
        valid: Corpus,
        folder: RunFolder,
        process: Process,
        signal: StopSignal,
        tuned: bool,
    ) -> None:
        self.recipe, base_without = recipe, replace(base, tensors={})
        self.folder, self.process, self.progress = folder, process, Progress()
        self._signal = signal
        self._kept = RunCheckpoint(folder, process, train, valid)
        settings, device = recipe.training, process.device
        torch.manual_seed(settings.seed)
        self.model = PretrainModel(base.config, recipe.softmax, settings.dropout)
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
        n_tokens = train.n_tokens + len(train)
        self._length = RunLength(settings, plan.n_batches(0), n_tokens, device.type)
        self._train = Feed(
            train, plan, base, recipe.softmax, settings.seed, device, settings.recased
        )
        self._states: States | None = None
        n_words, scale = len(base.vocabulary or []), recipe.optimizer.loss_scale
        self._judge = StepJudge(n_words, self._rate, scale, device)
        precision = settings.precision
        if precision == "auto":
            precision = "bfloat16" if device.type == "cuda" else "float32"
        self._autocast = precision == "bfloat16"
        self._validation = Validation(
            recipe, base_without, self.model, valid, folder, self._length, self._autocast, signal,
            tuned,
        )  # fmt: skip
        self._saved_at = 0.0
        self._begun = replace(self.progress)

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

        Raises:
            TrainingError: Training diverged.
        """
        try:
            with self._signal.after_the_step():
                return self._run(reporter)
        except TrainingError as error:
            remains = self._validation.what_remains(self.progress)
            raise TrainingError(f"{error}{remains}") from error

    def _run(self, reporter: Reporter) -> Perplexity | None:
        stop = self._evaluate_if_due(reporter)
        with closing(self._all_batches()) as batches:  # closing ends the data loader's processes
            since, clock = Since(self.progress), time.perf_counter()
            pace = Pace(self.progress, self.recipe.training.minutes)
            watch: Stopwatch | None = None
            for batch in batches if not stop else ():
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
                if finished or stop:
                    break
                stop = self._evaluate_if_due(reporter)
                if not stop and self._time_to_save():
                    self.save()
                if stop:
                    break
                clock = time.perf_counter()
                if since.wants_shares():
                    watch = Stopwatch(self.process.device)
        if stop:
            self.save(leaving=True)
            return None
        return self._finish(reporter)

    def _evaluate_if_due(self, reporter: Reporter) -> bool:
        """Evaluate when the plan says so, and save; return whether to stop."""
        if not self._validation.is_due(self.progress):
            return False
        self._evaluate(reporter)
        stop = self._agree()
        if not stop:
            self.save()
        return stop

    def _evaluate(self, reporter: Reporter) -> None:
        """Let the current model compete; the first process does the work."""
        now = self.progress
        now.valid_tokens = self._validation.n_tokens(now)  # all processes plan alike
        if not self.process.is_first or self._validation.compete(now, reporter):
            now.evaluated, now.evaluated_seconds = now.step, now.seconds

    def _finish(self, reporter: Reporter) -> Perplexity | None:
        """Let the last model compete, and evaluate the best one on the whole validation text."""
        if self.progress.evaluated != self.progress.step:
            self._evaluate(reporter)
        stop = self._agree()
        self.save(leaving=True)
        if stop or not self.process.is_first:
            return None
        return self._validation.result(self.progress, reporter)

    def _agree(self) -> bool:
        """Return whether to stop; the first process decides for all, and its clock counts."""
        stop = self._signal.asked
        own = torch.tensor([self.progress.seconds, float(stop)], dtype=torch.float64)
        self.progress.seconds, stop = self.process.from_first(own).tolist()
        return bool(stop)

    def stop(self) -> None:
        """Save and stop after the current step."""
        self._signal.asked = True

    def _done(self) -> float:
        """Return the fraction of the run that is done."""
        return self._length.done(self.progress)

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
        n_steps = self._length.n_steps or self.progress.expected or None
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
            "epoch": self.progress.epoch + self.progress.batch / self._length.steps_per_epoch,
            "learning_rate": self.optimizers[0].param_groups[0]["lr"],
            "done": self._done(),
            "sampled": self.model.sampled,
        }
        if (busy := gpu_busy(self.process.device)) is not None:
            values["gpu_busy"] = busy
        self.folder.report(kind="training", step=self.progress.step, **values)
        reporter.training(self.progress.step, values, self._seconds_left())

    def _seconds_left(self) -> float:
        """Estimate the time to the end of the run, evaluations included."""
        now, begun = self.progress, self._begun
        each = (now.seconds - begun.seconds) / max(1, now.tokens - begun.tokens)
        training = max(0.0, 1 - self._done()) * self._length.tokens(now) * each
        return training + self._validation.seconds_left(now, each)

    # Saving

    def save(self, leaving: bool = False) -> None:
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
        self.progress, judged, self._states = self._kept.load(
            self.model, self.optimizers, self._carried_shapes()
        )
        self._judge.load_state(judged)
        self._saved_at = self.progress.seconds
        self._begun = replace(self.progress)
        if not self.folder.best.is_dir():  # the models to come compete among themselves
            self.progress.best = math.inf
            self.progress.best_step = self.progress.evaluated = -1
        if self.process.is_first:
            self.folder.forget_after(self.progress.step)

    def _carried_shapes(self) -> list[tuple[int, int, int]]:
        """Return the shapes of h and c of a layer; empty if states are not carried on."""
        context, batch = self.model.config.context, self.recipe.batch
        if batch.order == "sentences":
            return []
        rows = max(1, batch.tokens // batch.steps) // self.process.size
        widths = (context.projection_dim, context.cell_dim)
        return [(context.n_directions, rows, width) for width in widths]

    def _time_to_save(self) -> bool:
        every = 60 * self.recipe.training.save_every
        return self.progress.seconds - self._saved_at >= every
