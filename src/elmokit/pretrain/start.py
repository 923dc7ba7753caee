"""Pretraining a biLM: :func:`pretrain` checks the settings, prepares the text and trains."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace

from elmokit.arguments import flag, instance
from elmokit.formats import read_model
from elmokit.formats.checkpoint import Checkpoint
from elmokit.inference.perplexity import Perplexity
from elmokit.io.lines import STANDARD_INPUT
from elmokit.pretrain.checks import (
    check_model_size,
    check_new_vocabulary,
    check_processes,
    clear_memory_errors,
    completed,
    read_vocabulary,
    resumed_settings,
)
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.processes import Process, joined
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.paths import RunPaths
from elmokit.pretrain.run.reporter import Reporter
from elmokit.pretrain.run.stop_signal import StopSignal
from elmokit.pretrain.run.tally import Progress
from elmokit.pretrain.starting_model import starting_model
from elmokit.pretrain.trainer import Trainer
from elmokit.settings import Mistakes


def pretrain(
    recipe: Recipe | None,
    paths: RunPaths,
    *,
    resume: bool = False,
    device: str | None = None,
    processes: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Perplexity | None:
    """Train a biLM.

    Args:
        recipe: All settings. None uses the defaults or, with resume=True, those of the run.
        paths: The text, the run's folder, and what to start from.
        resume: Whether to continue the run in ``paths.out``. Only settings of optimizer and
            training may change.
        device: Where to train; None uses a GPU if available.
        processes: Number of processes that tokenise; None uses one per core.
        say: Called with each line of progress, in the first of several processes; None is silent.

    Returns:
        The perplexity of the best model on the validation text. None if the run was stopped
        before its end, and in all processes but the first.
    """
    instance(paths, "paths", RunPaths, "a RunPaths")
    if recipe is not None:
        instance(recipe, "recipe", Recipe, "a Recipe")
    flag(resume, "resume")
    folder, start, locked = RunFolder(paths.out), paths.start(), False
    with ExitStack() as stack:
        process = stack.enter_context(joined(device))
        tell = say if say is not None and process.is_first else _silent
        signal = stack.enter_context(StopSignal(tell))
        if resume:
            recipe, start = resumed_settings(folder, recipe, start)
            if process.is_first:
                stack.enter_context(folder.locked())
                locked = True
            resume = folder.checkpoint.exists()  # the run may have been stopped before it saved
        recipe = recipe or Recipe()
        mistakes, model, words = Mistakes(), None, None
        with mistakes.noted():
            check_processes(processes)
        with mistakes.noted():
            paths.check()
        if not resume:
            with mistakes.noted():
                folder.check_free()
            with mistakes.noted():
                words = read_vocabulary(start.vocabulary)
            with mistakes.noted():
                check_new_vocabulary(recipe.text, start)
                model = None if start.init_from is None else read_model(start.init_from)
        with mistakes.noted():
            recipe = completed(recipe, model, start)
            check_model_size(model.config if model else recipe.model, recipe, process.device)
        mistakes.report()
        if process.is_first and not resume:
            if not locked:
                stack.enter_context(folder.locked())
            folder.begin(recipe, start)
        train, held_out = _prepare(paths, recipe, process, processes)
        base = folder.base() if resume else starting_model(recipe, train, model, words, start)
        used = _without_sampling_few(recipe, len(base.vocabulary or []), tell)
        check_model_size(base.config, used, process.device, train.n_words + held_out.n_words)
        if process.is_first and not resume:
            folder.keep_base(base)
            tell(_summary(base, train, process))
        tuned = start.init_from is not None
        parts = (used, base, train, held_out, folder, process, signal, tuned)
        with clear_memory_errors(), closing(Trainer(*parts)) as trainer:
            if resume:
                trainer.resume()
                if process.is_first:
                    folder.keep_recipe(recipe, start)
                tell(f"resuming at step {trainer.progress.step:,}")
            with Reporter(folder, tell, process.is_first) as reporter:
                found = trainer.run(reporter)
            tell(_result(found, folder, trainer.progress, tuned))
        return found


def _result(found: Perplexity | None, folder: RunFolder, progress: Progress, tuned: bool) -> str:
    if found is None:
        return f"stopped and saved in {folder.path}; continue with resume=True"
    said = f"perplexity {found.mean:.2f}; the model is {folder.best}"
    if tuned and progress.best_step == 0:
        said += (
            ", unchanged: no evaluation was better than the start; try a lower "
            "optimizer.learning_rate, or more text"
        )
    elif 0 < progress.best_step < progress.step:
        said += f", of step {progress.best_step:,}"
    return said


def _silent(line: str) -> None:
    pass


def _prepare(
    paths: RunPaths, recipe: Recipe, process: Process, processes: int | None
) -> tuple[Corpus, Corpus]:
    """Prepare both texts; the first process does the work, the others wait and reuse it."""
    text = recipe.text
    options = TextOptions(text.chosen_tokenizer, text.tokenized, recipe.model.script)
    if not process.is_first:
        process.wait()
        if STANDARD_INPUT in (*paths.text, *paths.valid):  # the first process has read it
            return Corpus(paths.prepared / "train"), Corpus(paths.prepared / "valid")
    folder = paths.prepared
    train = prepare(paths.text, folder / "train", options, processes, "training text")
    held_out = prepare(paths.valid, folder / "valid", options, processes, "validation text")
    if process.is_first:
        process.wait()
    return train, held_out


def _without_sampling_few(recipe: Recipe, n_words: int, tell: Callable[[str], None]) -> Recipe:
    """Return the recipe with a full softmax if the vocabulary is too small for sampling."""
    if recipe.softmax.kind != "sampled" or recipe.softmax.samples <= n_words // 2:
        return recipe
    tell(f"the vocabulary has only {n_words:,} words: using the full softmax instead of sampling")
    return replace(recipe, softmax=replace(recipe.softmax, kind="full"))


def _summary(base: Checkpoint, train: Corpus, process: Process) -> str:
    known = set(base.vocabulary or [])
    counts = zip(train.words, train.counts.tolist(), strict=True)
    unknown = 1 - sum(n for word, n in counts if word in known) / train.n_tokens
    return (
        f"{train.n_tokens:,} tokens in {len(train):,} sentences, {train.n_words:,} distinct words; "
        f"vocabulary of {len(known):,}, {unknown:.2%} of tokens unknown; "
        f"{base.n_parameters:,} parameters without the softmax, on "
        f"{process.size} × {process.device.type}"
    )
