"""Perplexity by the whole softmax, each sentence alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from elmokit.data.batches import TrainingBatch, ahead, one_after_another
from elmokit.data.corpus import Corpus
from elmokit.pretrain.model import BatchMaker, DeviceBatch, PretrainModel, WordTable
from elmokit.progress import DelayedProgress


@dataclass(frozen=True)
class Evaluation:
    """How well a model predicts a text."""

    forward: float
    """Perplexity of the forward direction."""
    backward: float
    """Perplexity of the backward direction; NaN for a forward model."""
    mean: float
    """exp of the mean of both losses."""
    n_tokens: int
    """Tokens of the text; each direction also predicts one mark a sentence."""
    n_sentences: int
    unknown_rate: float
    """Share of tokens the vocabulary lacks; the more, the lower the perplexity seems."""
    bits_per_character: float
    """Mean of both directions, over the tokens' characters and a space behind each."""


@torch.no_grad()
def evaluate(
    model: PretrainModel,
    corpus: Corpus,
    table: WordTable,
    make: BatchMaker,
    unknown: int,
    batch_tokens: int,
    max_tokens: int | None = None,
    progress: bool = True,
) -> Evaluation:
    """Evaluate a model on a corpus.

    Args:
        model: With the whole softmax or an adaptive one.
        corpus: The text.
        table: Its words' characters.
        make: What makes its batches.
        unknown: The row of the softmax that stands for words it lacks.
        batch_tokens: About how many tokens to run at once.
        max_tokens: Stop after so many; None for all.
        progress: Whether to show a bar.
    """
    training = model.training
    model.eval()
    losses = torch.zeros(len(model.bilm.directions), dtype=torch.float64)
    predicted = n_tokens = n_sentences = n_unknown = n_characters = 0
    sizes = np.fromiter((len(word) + 1 for word in corpus.words), np.int64, corpus.n_words)
    try:
        with DelayedProgress("evaluating", corpus.n_tokens, "tokens", progress) as bar:
            for batch, on_device in _batches(corpus, make, batch_tokens):
                sums, _ = model(on_device, table, None)
                losses += sums.double().cpu()
                predicted += batch.total
                here = batch.total - len(batch.lengths)
                n_tokens, n_sentences = n_tokens + here, n_sentences + len(batch.lengths)
                words = batch.targets[0][batch.targets[0] > 1]
                n_unknown += int((make.targets[words] == unknown).sum())
                n_characters += int(sizes[words - 2].sum())
                bar.advance(here)
                if max_tokens is not None and n_tokens >= max_tokens:
                    break
    finally:
        model.train(training)
    nats = (losses / predicted).tolist()
    return Evaluation(
        _exp(nats[0]),
        _exp(nats[1]) if len(nats) > 1 else math.nan,
        _exp(sum(nats) / len(nats)),
        n_tokens,
        n_sentences,
        n_unknown / n_tokens,
        float(losses.mean()) / math.log(2) / n_characters,
    )


def _batches(
    corpus: Corpus, make: BatchMaker, batch_tokens: int
) -> Iterator[tuple[TrainingBatch, DeviceBatch]]:
    def one(number: int) -> tuple[TrainingBatch, DeviceBatch]:
        batch = plan.batch(0, number)
        return batch, make(batch, None)

    plan = one_after_another(corpus, batch_tokens)
    yield from ahead(one, range(plan.n_batches(0)))


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf
