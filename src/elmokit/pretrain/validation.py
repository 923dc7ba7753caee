"""Evaluations of a run on its validation text, and the best model that they find."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import torch

from elmokit.errors import TrainingError
from elmokit.formats import native, read_model
from elmokit.formats.checkpoint import Checkpoint
from elmokit.inference.perplexity import Perplexity
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.data.training_batches import one_after_another
from elmokit.pretrain.objective.evaluate import evaluate
from elmokit.pretrain.objective.evaluation_plan import EvaluationPlan, relative_cost
from elmokit.pretrain.objective.network import PretrainModel
from elmokit.pretrain.objective.step_judge import advice
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.length import RunLength
from elmokit.pretrain.run.reporter import Reporter
from elmokit.pretrain.run.stop_signal import StopSignal
from elmokit.pretrain.run.tally import Progress

_FAR_ABOVE = 10.0  # times the perplexity of guessing, which is the size of the vocabulary
_CPU_BATCH = 2048  # tokens that are evaluated at once on a CPU, to answer Ctrl-C soon


class Validation:
    """The evaluations of one run, in its first process.

    Args:
        recipe: A complete recipe.
        base: Sizes and vocabulary of the model.
        model: The model in training.
        text: The validation text.
        folder: The run's folder, for metrics and the best model.
        length: The length of the run.
        autocast: Whether to compute in bfloat16.
        signal: Interrupts an evaluation.
        tuned: Whether the run starts from a model, which is then evaluated too.
    """

    def __init__(
        self,
        recipe: Recipe,
        base: Checkpoint,
        model: PretrainModel,
        text: Corpus,
        folder: RunFolder,
        length: RunLength,
        autocast: bool,
        signal: StopSignal,
        tuned: bool,
    ) -> None:
        self._base, self._model, self._folder, self._length = base, model, folder, length
        self._autocast, self._signal, self._tuned = autocast, signal, tuned
        self._rate = recipe.optimizer.learning_rate or 0.0
        self._device = next(model.parameters()).device
        tokens = recipe.batch.tokens
        self._batch = tokens if self._device.type == "cuda" else min(tokens, _CPU_BATCH)
        plan = one_after_another(text, self._batch)
        self._feed = Feed(text, plan, base, recipe.softmax, recipe.training.seed, self._device)
        cost = relative_cost(base.config, recipe.softmax)
        self._plan = EvaluationPlan(cost, recipe.training.evaluate_every, text.n_tokens)
        self._tokens, self._seconds = 0, 0.0  # evaluated by this process
        self._best: Perplexity | None = None  # of the best model on the whole text

    def is_due(self, now: Progress) -> bool:
        """Return whether to evaluate before the next step."""
        done, total = self._length.done(now), self._length.tokens(now)
        if now.step == 0:
            return self._tuned and now.evaluated < 0
        last = self._length.fraction(max(0, now.evaluated), now.evaluated_seconds)
        return done < 1 and self._plan.is_due(done, last, total, self.n_tokens(now))

    def n_tokens(self, now: Progress) -> int:
        """Return the tokens of each evaluation during training."""
        return now.valid_tokens or self._plan.n_tokens(self._length.tokens(now))

    def seconds_left(self, now: Progress, per_token: float) -> float:
        """Estimate the time of all evaluations to come.

        Args:
            now: The run's progress.
            per_token: Seconds that training on a token takes; used before the first evaluation.
        """
        each = self._seconds / self._tokens if self._tokens else self._plan.cost * per_token
        done, total = self._length.done(now), self._length.tokens(now)
        return each * self._plan.tokens_left(done, total, self.n_tokens(now))

    def compete(self, now: Progress, reporter: Reporter) -> bool:
        """Evaluate the current model, and keep it if it is the best so far.

        Returns:
            False if a signal arrived meanwhile; then nothing is changed.

        Raises:
            TrainingError: The model is useless.
        """
        found = self._perplexity(self.n_tokens(now))
        if found is None:
            return False
        self._record(now, found, reporter, whole=False)
        guessing = len(self._base.vocabulary or [])
        usable = math.isfinite(found.mean) and (
            now.step == 0 or found.mean < _FAR_ABOVE * guessing or found.mean <= now.best < math.inf
        )
        if usable and found.mean <= now.best:
            model = replace(self._base, tensors=self._model.tensors())
            native.write(model, self._folder.best, overwrite=True)
            now.best, now.best_step = found.mean, now.step
            self._best = found if found.n_tokens == self._plan.available else None
        # a high perplexity in the middle of a run may still come down
        ended_badly = self._length.done(now) >= 1 and not (now.best < math.inf and self._overfits())
        if not usable and (ended_badly or not math.isfinite(found.mean)):
            raise TrainingError(
                f"training failed: the validation perplexity is {found.mean:.3g} at step "
                f"{now.step:,}, while guessing among all words gives {guessing:,}; "
                + advice(self._rate, self._folder.checkpoint.exists())
            )
        return True

    def result(self, now: Progress, reporter: Reporter) -> Perplexity | None:
        """Return the best model's perplexity on the whole text; None if a signal arrives."""
        found = self._best
        if found is None:
            self._model.load(read_model(self._folder.best).tensors)
            found = self._perplexity(None)
        if found is not None:
            self._record(now, found, reporter, whole=True)
        return found

    def what_remains(self, now: Progress) -> str:
        """Say which model is left after training has failed."""
        if now.best_step < 0 or not self._folder.best.is_dir():
            return ""
        which = "that the run started from" if now.best_step == 0 else f"of step {now.best_step:,}"
        return f"; {self._folder.best} is the model {which}, with perplexity {now.best:.2f}"

    def _overfits(self) -> bool:
        """Whether training went well to the last, on its own text."""
        training = [r for r in self._folder.reports() if r["kind"] == "training"]
        last = training[-1] if training else {}
        guessing = math.log(len(self._base.vocabulary or []))
        return not last.get("skipped", 1) and last.get("loss", math.inf) < guessing

    def _perplexity(self, max_tokens: int | None) -> Perplexity | None:
        plan = one_after_another(self._feed.corpus, self._batch, max_tokens)
        clock = time.perf_counter()
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._autocast):
            found = evaluate(self._model, self._feed, plan, lambda: self._signal.asked)
        if found is not None:
            self._seconds += time.perf_counter() - clock
            self._tokens += found.n_tokens
        return found

    def _record(self, now: Progress, found: Perplexity, reporter: Reporter, whole: bool) -> None:
        values = found.values()
        counts = {"seconds": now.seconds, "tokens": now.tokens, "whole": whole}
        self._folder.report(kind="evaluation", step=now.step, **counts, **values)
        reporter.evaluation(now.step, values, whole)
