"""Evaluating a model that is there, on text that is there."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from elmokit.devices import choose_device
from elmokit.errors import InputError, UnsupportedModelError
from elmokit.formats import read_model
from elmokit.formats.checkpoint import Checkpoint
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.training_batches import one_after_another
from elmokit.pretrain.objective.evaluate import Evaluation, evaluate
from elmokit.pretrain.objective.network import PretrainModel
from elmokit.pretrain.recipe import SoftmaxSettings
from elmokit.pretrain.run.folder import RunFolder

_BATCH_TOKENS = {"cpu": 4096, "cuda": 65_536}


def evaluate_model(
    model: str,
    paths: Sequence[Path],
    tokenizer: str | None = None,
    tokenized: bool = False,
    device: str | None = None,
) -> Evaluation:
    """Perplexity of a model on text files, each sentence alone.

    Args:
        model: The folder of a run, whose best model is taken, or any model with a softmax.
        paths: Text files and folders.
        tokenizer: How to split the text; None for the run's or the model's own way.
        tokenized: Whether each line is one sentence, its tokens apart by white space; so it is too
            where the run's text was, unless a tokenizer is given.
        device: Where to run; None for a GPU where there is one.
    """
    run, checkpoint = RunFolder(Path(model)), read_model(model)
    if checkpoint.vocabulary is None:
        raise UnsupportedModelError(
            f"{model} has no softmax and vocabulary, so that it cannot predict words"
        )
    options = _text_options(run, checkpoint, tokenizer, tokenized)
    chosen = choose_device(device)
    network = _network(checkpoint).to(chosen).eval()
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare(paths, Path(folder) / "corpus", options)
        plan = one_after_another(corpus, _BATCH_TOKENS[chosen.type])
        feed = Feed(corpus, plan, checkpoint, SoftmaxSettings("full"), 0, chosen)
        return evaluate(network, feed)


def _text_options(
    run: RunFolder, checkpoint: Checkpoint, tokenizer: str | None, tokenized: bool
) -> TextOptions:
    """How to read the text: as asked for, else as the run read its own, else as the model does."""
    if tokenized:
        if tokenizer not in (None, "whitespace"):
            raise InputError(
                f"tokenised text is not split by a tokenizer; leave out {tokenizer}, or --tokenized"
            )
        return TextOptions("whitespace", tokenized)
    if tokenizer is None and run.is_begun:
        text = run.recipe().text
        return TextOptions(text.tokenizer or checkpoint.config.tokenizer, text.tokenized)
    return TextOptions(tokenizer or checkpoint.config.tokenizer)


def _network(checkpoint: Checkpoint) -> PretrainModel:
    kind = "adaptive" if checkpoint.config.softmax_cutoffs else "full"
    network = PretrainModel(checkpoint.config, SoftmaxSettings(kind), 0.0)
    network.load(checkpoint.tensors)
    return network
