"""When to evaluate, and on how many tokens: at most a tenth of the time.

The plan depends on counts alone, never on a clock: a resumed run evaluates after the same steps on
the same tokens as an uninterrupted one, and so finds the same best model. What an evaluation costs
is estimated from the matrices that a token passes. A training step passes each of them three times,
forwards and twice backwards, with a sampled softmax only some rows of the last one; an evaluation
passes each once. Character CNN and optimizer are left out; both make training slower still.
"""

from __future__ import annotations

import math

from elmokit.config import ModelConfig
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.pretrain.recipe_sections import SoftmaxSettings

MOST_TOKENS, FEWEST_TOKENS = 200_000, 5_000
"""Bounds of the tokens of one evaluation during training, if the validation text has as many."""

_TRAINING = 9.0  # times the cost of the evaluations during training


def relative_cost(config: ModelConfig, softmax: SoftmaxSettings) -> float:
    """Return the cost of evaluating on a token, relative to that of training on it."""
    shapes = Checkpoint(config, {}).expected_shapes().items()
    sizes = [(name, math.prod(shape)) for name, shape in shapes if len(shape) == 2]
    # each direction has its own context layers, but both use the softmax
    layers = sum(n for name, n in sizes if "_layers." in name) / config.context.n_directions
    words = sum(n for name, n in sizes if name.startswith(SOFTMAX))
    used = words
    if softmax.kind == "sampled":
        used = min(words, softmax.samples * config.context.projection_dim)
    return (layers + words) / (3 * (layers + used))


class EvaluationPlan:
    """When to evaluate during a run.

    Args:
        cost: The :func:`relative_cost`.
        every: Fraction of the run between evaluations, if that is not too often.
        available: Tokens of the validation text.
    """

    def __init__(self, cost: float, every: float, available: int) -> None:
        self.cost, self._every = cost, every
        self.available = available
        """Tokens of the validation text."""

    def n_tokens(self, run_tokens: float) -> int:
        """Return the tokens of each evaluation during training.

        Args:
            run_tokens: Tokens of the whole run.
        """
        affordable = math.floor(run_tokens * self._every / (_TRAINING * self.cost))
        return min(MOST_TOKENS, max(FEWEST_TOKENS, affordable), self.available)

    def is_due(self, done: float, last: float, run_tokens: float, n_tokens: int) -> bool:
        """Return whether to evaluate now.

        Args:
            done: Fraction of the run that is done.
            last: Fraction that was done at the last evaluation.
            run_tokens: Tokens of the whole run.
            n_tokens: Tokens of an evaluation.
        """
        return self._number(done, run_tokens, n_tokens) > self._number(last, run_tokens, n_tokens)

    def tokens_left(self, done: float, run_tokens: float, n_tokens: int) -> int:
        """Return the tokens of all evaluations to come; the last one is on the whole text."""
        some = max(
            0, self._number(1, run_tokens, n_tokens) - self._number(done, run_tokens, n_tokens)
        )
        return some * n_tokens + self.available

    def _number(self, done: float, run_tokens: float, n_tokens: int) -> int:
        """Return how many evaluations belong to this fraction of the run."""
        every = max(self._every, _TRAINING * self.cost * n_tokens / max(1.0, run_tokens))
        return math.floor(done / every + 1e-9)
