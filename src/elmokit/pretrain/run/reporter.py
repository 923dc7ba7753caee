"""Telling how training goes: lines in the terminal, TensorBoard events, a picture."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from elmokit.pretrain.run.folder import RunFolder


class Reporter:
    """Reports of one run.

    Args:
        folder: The run, where events and the picture go.
        say: What prints a line.
        writes: Whether to write anything; of several processes, one does.
    """

    def __init__(self, folder: RunFolder, say: Callable[[str], None], writes: bool = True) -> None:
        self._folder, self._say, self._writes = folder, say, writes
        self._events: Any = None
        self._started: tuple[float, float] | None = None
        if not writes:
            return
        with contextlib.suppress(ImportError):
            from tensorboardX import SummaryWriter

            self._events = SummaryWriter(str(folder.path))

    def __enter__(self) -> Reporter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._events is not None:
            self._events.close()
        if self._writes:
            draw_training(self._folder)

    def training(self, step: int, values: dict[str, Any]) -> None:
        """Some steps of training are done."""
        self._event("training", step, values)
        now = time.monotonic()
        if self._started is None:
            self._started = (now, values["done"])
        passed, done = now - self._started[0], values["done"] - self._started[1]
        left = f", {_duration(passed / done * (1 - values['done']))} left" if done > 0 else ""
        loss = f"loss {values['loss']:.3f}, " if "loss" in values else ""
        skipped = f", {values['skipped']} steps skipped" if values["skipped"] else ""
        busy = f", GPU {values['gpu_busy']:.0%} busy" if "gpu_busy" in values else ""
        self._say(
            f"step {step:,}, epoch {values['epoch']:.2f}: {loss}"
            f"{values['tokens_per_second']:,.0f} tokens/s{busy}{skipped}{left}"
        )

    def evaluation(self, step: int, values: dict[str, Any]) -> None:
        """The validation text was scored."""
        self._event("evaluation", step, values)
        directions = [f"{d} {values[d]:.2f}" for d in ("forward", "backward") if d in values]
        self._say(
            f"step {step:,}: perplexity {values['mean']:.2f} ({', '.join(directions)}), "
            f"{values['unknown_rate']:.2%} unknown"
        )
        draw_training(self._folder)

    def _event(self, kind: str, step: int, values: dict[str, Any]) -> None:
        if self._events is not None:
            for name, value in values.items():
                if isinstance(value, dict):
                    self._event(f"{kind}/{name}", step, value)
                else:
                    self._events.add_scalar(f"{kind}/{name}", value, step)


def draw_training(folder: RunFolder) -> None:
    """Losses and perplexities so far as training.png, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogFormatter
    except ImportError:
        return
    reports = folder.reports()
    train = [r for r in reports if r["kind"] == "training" and "loss" in r]
    valid = [r for r in reports if r["kind"] == "evaluation" and math.isfinite(r["mean"])]
    if not train and not valid:
        return
    line = [r for r in valid if not r["whole"]] or valid
    drawn = [r for r in train if r.get("sampled")]
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    left = figure.subplots()
    millions = 1e6
    parts = (
        (drawn, ":", "the words drawn"),
        ([r for r in train if not r.get("sampled")], "-", "all words"),
    )
    for some, style, among in (part for part in parts if part[0]):
        at = [r["tokens"] / millions for r in some]
        left.plot(at, [r["loss"] for r in some], style, color="#0072B2", label=f"among {among}")
    left.set_xlabel("million tokens seen")
    left.set_ylabel("training loss a token", color="#0072B2")
    if drawn:
        left.legend(frameon=False)
    right = left.twinx()
    right.plot(
        [r["tokens"] / millions for r in line], [r["mean"] for r in line], "o-", color="#D55E00"
    )
    label = "validation perplexity"
    if valid:
        last = valid[-1]  # at the end that of the best, by all of the text: not a point of the line
        label += f", {last['mean']:.1f} {'at the end' if last['whole'] else 'so far'}"
        right.set_yscale("log")
        right.yaxis.set_major_formatter(LogFormatter())
        right.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    right.set_ylabel(label, color="#D55E00")
    new = folder.path / "training.new.png"
    with contextlib.suppress(OSError):  # a picture is not worth a run
        figure.savefig(new, dpi=150)
        new.replace(folder.path / "training.png")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
