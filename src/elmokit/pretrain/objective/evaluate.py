"""Perplexity of a model in training on its validation text."""

from __future__ import annotations

import numpy as np
import torch

from elmokit.inference.perplexity import Perplexity
from elmokit.io.progress import DelayedProgress
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.data.training_batches import FIRST_WORD
from elmokit.pretrain.objective.network import PretrainModel


@torch.no_grad()
def evaluate(
    model: PretrainModel,
    feed: Feed,
    max_tokens: int | None = None,
    progress: bool = True,
) -> Perplexity:
    """Compute a model's full-softmax perplexity on a corpus, each sentence alone.

    Args:
        model: A model with a full or adaptive softmax.
        feed: The text; only its first epoch is read.
        max_tokens: Stop after this many tokens; None reads all of them.
        progress: Whether to show a progress bar.
    """
    training = model.training
    model.eval()
    losses = torch.zeros(model.config.context.n_directions, dtype=torch.float64)
    n_tokens = n_sentences = n_unknown = n_characters = 0
    corpus, plan = feed.corpus, feed.plan
    sizes = np.fromiter((len(word) + 1 for word in corpus.words), np.int64, corpus.n_words)
    try:
        with DelayedProgress("evaluating", corpus.n_tokens, "tokens", progress) as bar:
            for number in range(plan.n_batches(0)):
                batch = plan.batch(0, number)
                sums, _ = model(feed.make(batch, None).to(feed.device), feed.table, None)
                losses += sums.double().cpu()
                here = batch.total - len(batch.lengths)
                n_tokens, n_sentences = n_tokens + here, n_sentences + len(batch.lengths)
                words = batch.targets[0][batch.targets[0] >= FIRST_WORD]
                n_unknown += int((feed.targets[words] == feed.unknown).sum())
                n_characters += int(sizes[words - FIRST_WORD].sum())
                bar.advance(here)
                if max_tokens is not None and n_tokens >= max_tokens:
                    break
    finally:
        model.train(training)
    return Perplexity.from_losses(
        losses.tolist(),
        n_tokens=n_tokens,
        n_sentences=n_sentences,
        n_unknown=n_unknown,
        n_characters=n_characters,
    )
