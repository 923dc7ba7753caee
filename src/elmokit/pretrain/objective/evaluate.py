"""Perplexity of a model in training on its validation text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from elmokit.inference.perplexity import Perplexity
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.data.training_batches import FIRST_WORD, Batches
from elmokit.pretrain.objective.network import PretrainModel


@torch.no_grad()
def evaluate(
    model: PretrainModel, feed: Feed, plan: Batches, stopped: Callable[[], bool]
) -> Perplexity | None:
    """Compute a model's full-softmax perplexity on a corpus, each sentence alone.

    Args:
        model: A model with a full or adaptive softmax.
        feed: The text.
        plan: Which batches of it; only its first epoch is read.
        stopped: Asked before each batch. If it returns True, there is no result.
    """
    training = model.training
    model.eval()
    losses = torch.zeros(model.config.context.n_directions, dtype=torch.float64)
    n_tokens = n_sentences = n_unknown = n_characters = 0
    corpus = feed.corpus
    sizes = np.fromiter((len(word) + 1 for word in corpus.words), np.int64, corpus.n_words)
    try:
        for number in range(plan.n_batches(0)):
            if stopped():
                return None
            batch = plan.batch(0, number)
            sums, _ = model(feed.make(batch, None).to(feed.device), feed.table, None)
            losses += sums.double().cpu()
            n_tokens += batch.total - len(batch.lengths)
            n_sentences += len(batch.lengths)
            words = batch.targets[0][batch.targets[0] >= FIRST_WORD]
            n_unknown += int((feed.targets[words] == feed.unknown).sum())
            n_characters += int(sizes[words - FIRST_WORD].sum())
    finally:
        model.train(training)
    return Perplexity.from_losses(
        losses.tolist(),
        n_tokens=n_tokens,
        n_sentences=n_sentences,
        n_unknown=n_unknown,
        n_characters=n_characters,
    )
