"""Checks and completes the settings of a run before anything is written or trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import torch

from elmokit.config import ModelConfig
from elmokit.devices import available_bytes, is_out_of_memory
from elmokit.errors import ConfigError, FormatError, InputError, OutOfMemoryError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.io.lines import read_lines
from elmokit.pretrain.recipe import Recipe, check_context, check_recased
from elmokit.pretrain.recipe_sections import TextSettings
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.paths import Start
from elmokit.pretrain.warm_start import check_softmax
from elmokit.settings import Mistakes, flatten
from elmokit.text.tokenizers import DEFAULT_TOKENIZER, TOKENIZERS
from elmokit.text.vocabulary import Vocabulary

_FIXED = ("training.seed", "optimizer.name", "optimizer.accumulator")
"""Settings of optimizer and training that only matter at the start of a run."""


def resumed_settings(
    folder: RunFolder, recipe: Recipe | None, start: Start
) -> tuple[Recipe, Start]:
    """Return the recipe and start of a run to resume.

    Args:
        folder: The run.
        recipe: New settings; None keeps those of the run.
        start: What the caller wants to start from; empty fields keep those of the run.

    Raises:
        InputError: A setting differs that cannot change.
    """
    own, begun = folder.recipe(), folder.start()
    recipe = recipe or own
    if recipe.text.tokenizer is None:
        recipe = replace(recipe, text=replace(recipe.text, tokenizer=own.text.tokenizer))
    if recipe.optimizer.learning_rate is None:
        rate = own.optimizer.learning_rate
        recipe = replace(recipe, optimizer=replace(recipe.optimizer, learning_rate=rate))
    if begun.init_from:  # the script of that model
        script = own.model.script
        recipe = replace(recipe, model=replace(recipe.model, script=script))
    before, now = flatten(own.to_dict()), flatten(recipe.to_dict())
    changed = [
        f"{name}={value} instead of {before[name]}"
        for name, value in now.items()
        if value != before[name]
        and (name in _FIXED or name.partition(".")[0] not in ("optimizer", "training"))
    ]
    changed += [
        f"{name}={value} instead of {getattr(begun, name)}"
        for name, value in asdict(start).items()
        if value and value != getattr(begun, name)
    ]
    if changed:
        raise InputError(
            f"a resumed run cannot use {' and '.join(changed)}; leave it out, or start a new run: "
            "only settings of optimizer and training can change, except "
            f"{', '.join(_FIXED)}"
        )
    return recipe, begun


def completed(recipe: Recipe, model: Checkpoint | None, start: Start) -> Recipe:
    """Return the recipe with its tokenizer, script and learning rate filled in.

    Args:
        recipe: The settings.
        model: The model to start from, if any. Its tokenizer and its width apply.
        start: What the run starts from.

    Raises:
        ElmoKitError: The model cannot be trained with these settings.
    """
    mistakes, text, own = Mistakes(), recipe.text, recipe.model
    context = own.context
    name = text.tokenizer or DEFAULT_TOKENIZER
    if model is not None:
        context = model.config.context
        with mistakes.noted():
            check_context(recipe.batch.order, context)
        with mistakes.noted():
            check_recased(recipe.training, bool(model.config.token_encoder.filters))
        if keeps_vocabulary(model, text, start):
            with mistakes.noted():
                check_softmax(model.config, recipe.softmax)
        name = text.tokenizer or model.config.tokenizer
        own = replace(own, script=model.config.script)
    if text.tokenized:
        name = "whitespace"
    elif name not in TOKENIZERS:
        with mistakes.noted():
            raise InputError(
                f"the model splits text with {name}, which is not a tokenizer of ElmoKit; set "
                "text.tokenizer, or use tokenised text and text.tokenized=true"
            )
    mistakes.report()
    return replace(
        recipe,
        model=own,
        text=replace(text, tokenizer=name),
        optimizer=recipe.optimizer.for_width(context.cell_dim),
    )


def keeps_vocabulary(model: Checkpoint, text: TextSettings, start: Start) -> bool:
    """Whether training continues with the vocabulary of the model it starts from."""
    changed = text.new_vocabulary or start.vocabulary is not None
    return model.vocabulary is not None and not changed


def check_new_vocabulary(text: TextSettings, start: Start) -> None:
    """Raise if text.new_vocabulary is set without a model to start from."""
    if text.new_vocabulary and start.init_from is None:
        raise InputError(
            "text.new_vocabulary has no effect without init_from=; leave it out, or name a model "
            "to start from"
        )


def read_vocabulary(path: str | None) -> list[str] | None:
    """Read a vocabulary file, one word per line; None without a file."""
    if path is None:
        return None
    if not Path(path).is_file():
        raise InputError(f"no file {path}; vocabulary= needs a file with one word per line")
    words = [line for line in read_lines(Path(path)) if line]
    try:
        Vocabulary(words)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    if len(words) == len(Vocabulary.marks):
        raise InputError(
            f"{path} has no words besides {', '.join(Vocabulary.marks)}; add the words to predict"
        )
    return words


def check_processes(processes: int | None) -> None:
    """Raise if the number of processes makes no sense."""
    if processes is not None and processes < 1:
        raise InputError(f"processes={processes} must be 1 or more")


def check_model_size(
    config: ModelConfig, recipe: Recipe, device: torch.device, n_words: int = 0
) -> None:
    """Raise if training needs more memory than the machine or GPU has.

    Args:
        config: The model's sizes.
        recipe: Its optimizer has one or two numbers for each parameter, beside the gradient.
        device: Where to train.
        n_words: Distinct words of both texts, whose characters are kept.
    """
    numbers = 3 if recipe.optimizer.name == "adagrad" else 4
    try:
        shapes = Checkpoint(config, {}).expected_shapes().values()
        parameters = sum(map(math.prod, shapes))
    except (RuntimeError, OverflowError, TypeError):  # PyTorch's errors for more than 2^63
        parameters = 1 << 63
    needed = 4 * numbers * parameters + 8 * n_words * config.token_encoder.max_characters
    available = available_bytes(device)
    if available is not None and needed > available:
        raise ConfigError(
            f"training this model needs {_in_gib(needed)} of memory for its {parameters:,} "
            f"parameters, but {_in_gib(available)} are free on the {device.type}; choose smaller "
            "sizes, such as model.context.cell_dim and text.vocabulary_size"
        )


def _in_gib(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 30):,.1f} GiB"


@contextmanager
def clear_memory_errors() -> Iterator[None]:
    """Turn running out of memory into an OutOfMemoryError of one sentence."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, OutOfMemoryError) or not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(
            "training ran out of memory; choose a smaller batch.tokens, or smaller sizes of the "
            "model"
        ) from error
