"""The length of a run: in steps, or in minutes of training time."""

from __future__ import annotations

from elmokit.pretrain.recipe_sections import TrainingSettings
from elmokit.pretrain.run.tally import Progress

_SPEED = {"cuda": 20_000.0}  # tokens per second, a rough guess that is meant to be low
_LEAST_SPEED = 100.0  # on other devices; tuning the bundled model on two cores is about as fast


class RunLength:
    """How long a run is, and how much of it is done.

    Args:
        settings: Epochs or minutes.
        steps: Steps of an epoch.
        tokens: Tokens that each direction predicts in an epoch.
        device: The type of the device, for a guess before a run with a time limit starts.
    """

    def __init__(self, settings: TrainingSettings, steps: int, tokens: int, device: str) -> None:
        self.steps_per_epoch, self._tokens = steps, tokens
        self._speed = _SPEED.get(device, _LEAST_SPEED)
        self._seconds = None if settings.minutes is None else 60 * settings.minutes
        self.n_steps = None if self._seconds else max(1, round(settings.epochs * steps))
        """Steps of the whole run; None if it has a time limit instead."""

    def fraction(self, step: int, seconds: float) -> float:
        """Return the fraction of the run that is done after some steps or training time."""
        if self.n_steps is None:
            return seconds / (self._seconds or 1.0)
        return step / self.n_steps

    def done(self, now: Progress) -> float:
        """Return the fraction of the run that is done."""
        return self.fraction(now.step, now.seconds)

    def tokens(self, now: Progress) -> float:
        """Return the tokens of the whole run; with a time limit an estimate."""
        if self.n_steps is not None:
            return self._tokens * self.n_steps / self.steps_per_epoch
        done = self.done(now)
        return now.tokens / done if done else (self._seconds or 0.0) * self._speed
