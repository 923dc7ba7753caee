"""Perplexity by the whole softmax, each sentence alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from elmokit.io.progress import DelayedProgress
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.objective.network import PretrainModel


@dataclass(frozen=True)
class Evaluation:
    """How well a model predicts a text."""

    forward: float
    """Perplexity of the forward direction."""
    backward: float | None
    """Perplexity of the backward direction; None for a forward model."""
    mean: float
    """exp of the mean of both losses, or of the one."""
    n_tokens: int
    """Tokens of the text; each direction also predicts one mark a sentence."""
    n_sentences: int
    unknown_rate: float
    """Share of tokens the vocabulary lacks; the more, the lower the perplexity seems."""
    bits_per_character: float
    """Mean of both directions, over the tokens' characters and a space behind each."""

    def values(self) -> dict[str, Any]:
        """What there is, by name."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@torch.no_grad()
def evaluate(
    model: PretrainModel,
    feed: Feed,
    max_tokens: int | None = None,
    progress: bool = True,
) -> Evaluation:
    """Evaluate a model on a corpus.

    Args:
        model: With the whole softmax or an adaptive one.
        feed: The text; its first epoch is looked at.
        max_tokens: Stop after so many; None for all.
        progress: Whether to show a bar.
    """
    training = model.training
    model.eval()
    losses = torch.zeros(model.config.context.n_directions, dtype=torch.float64)
    predicted = n_tokens = n_sentences = n_unknown = n_characters = 0
    corpus, plan = feed.corpus, feed.plan
    sizes = np.fromiter((len(word) + 1 for word in corpus.words), np.int64, corpus.n_words)
    try:
        with DelayedProgress("evaluating", corpus.n_tokens, "tokens", progress) as bar:
            for number in range(plan.n_batches(0)):
                batch = plan.batch(0, number)
                sums, _ = model(feed.make(batch, None).to(feed.device), feed.table, None)
                losses += sums.double().cpu()
                predicted += batch.total
                here = batch.total - len(batch.lengths)
                n_tokens, n_sentences = n_tokens + here, n_sentences + len(batch.lengths)
                words = batch.targets[0][batch.targets[0] > 1]
                n_unknown += int((feed.targets[words] == feed.unknown).sum())
                n_characters += int(sizes[words - 2].sum())
                bar.advance(here)
                if max_tokens is not None and n_tokens >= max_tokens:
                    break
    finally:
        model.train(training)
    nats = (losses / predicted).tolist()
    return Evaluation(
        _exp(nats[0]),
        _exp(nats[1]) if len(nats) > 1 else None,
        _exp(sum(nats) / len(nats)),
        n_tokens,
        n_sentences,
        n_unknown / n_tokens,
        float(losses.mean()) / math.log(2) / n_characters,
    )


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf
