"""Reports of a run: lines of text, TensorBoard events and a picture."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elmokit.errors import MissingExtraError
from elmokit.io.atomic import new_file
from elmokit.io.figures import COLOURS, save_figure
from elmokit.io.progress import clock_time
from elmokit.pretrain.run.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_INCHES = (5.0, 2.8)
_UNITS = ((1e6, " (millions)"), (1e3, " (thousands)"), (1, ""))  # of tokens


class Reporter:
    """Reports of one run.

    Args:
        folder: The run's folder, for events and the picture.
        say: Called with each line of text.
        writes: Whether to write files; only one of several processes does.
    """

    def __init__(self, folder: RunFolder, say: Callable[[str], None], writes: bool = True) -> None:
        self._folder, self._say, self._writes = folder, say, writes
        self._events: Any = None
        if not writes:
            return
        with contextlib.suppress(ImportError):
            from tensorboardX import SummaryWriter

            self._events = SummaryWriter(str(folder.path))

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the events and draw the picture; a user who presses Ctrl-C twice cannot wait."""
        if self._events is not None:
            self._events.close()
        if self._writes and kind is not KeyboardInterrupt:
            draw_training(self._folder)

    def training(self, step: int, values: dict[str, Any], seconds_left: float | None) -> None:
        """Report some steps of training."""
        self._event("training", step, values)
        left = "" if seconds_left is None else f", {clock_time(seconds_left)} left"
        loss = f"loss {values['loss']:.3f}, " if "loss" in values else ""
        skipped = f", {values['skipped']} steps skipped" if values["skipped"] else ""
        busy = f", GPU {values['gpu_busy']:.0%} busy" if "gpu_busy" in values else ""
        self._say(
            f"step {step:,}, epoch {values['epoch']:.2f}: {loss}"
            f"{values['tokens_per_second']:,.0f} tokens/s{busy}{skipped}{left}"
        )

    def evaluation(self, step: int, values: dict[str, Any], whole: bool) -> None:
        """Report an evaluation on the validation text.

        The one on the whole text is the result of the run, which the caller reports.
        """
        self._event("evaluation", step, values)
        if whole:
            return
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
                elif math.isfinite(value):  # tensorboardX prints warnings about others
                    self._events.add_scalar(f"{kind}/{name}", value, step)


def draw_training(folder: RunFolder) -> None:
    """Draw losses and perplexities so far as training.png, if matplotlib is installed."""
    reports = folder.reports()
    train = [r for r in reports if r["kind"] == "training" and "loss" in r]
    valid = [r for r in reports if r["kind"] == "evaluation" and math.isfinite(r["mean"])]
    if not train and not valid:
        return
    temporary = folder.path / "training.new.png"
    with (
        contextlib.suppress(MissingExtraError, OSError),  # neither may end a run
        new_file(folder.path / "training.png", temporary=temporary) as new,
    ):
        save_figure(lambda figure: _draw(figure, train, valid), _INCHES, new)


def _draw(figure: Figure, train: list[dict[str, Any]], valid: list[dict[str, Any]]) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    left = figure.subplots()
    most = max(r["tokens"] for r in (*train, *valid))
    unit, name = next((u for u in _UNITS if u[0] <= most), _UNITS[-1])
    sampled = [r for r in train if r.get("sampled")]
    full = [r for r in train if not r.get("sampled")]
    curves = ((sampled, ":", "loss (sampled words)"), (full, "-", "loss (all words)"))
    for some, style, label in curves:
        if some:
            at = [r["tokens"] / unit for r in some]
            style = style if len(some) > 1 else "o"  # a line has at least two points
            left.plot(at, [r["loss"] for r in some], style, color=COLOURS[0], label=label)
    left.set_xlabel(f"training tokens{name}")
    left.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=unit == 1))
    left.set_ylabel("training loss per token", color=COLOURS[0])
    if sampled:
        left.legend()
    # the last evaluation is of the best model on the whole text, and not a point of the curve
    curve = [r for r in valid if not r["whole"]] or valid
    right = left.twinx()
    right.spines["right"].set_visible(True)
    at = [r["tokens"] / unit for r in curve]
    right.plot(at, [r["mean"] for r in curve], "o-", color=COLOURS[1])
    label = "validation perplexity"
    if valid:
        last = valid[-1]
        label += f", {last['mean']:.1f} {'at the end' if last['whole'] else 'so far'}"
        right.set_yscale("log")
        low, high = right.get_ylim()
        few = high < 4 * low  # round numbers of a log axis would be too far apart
        right.yaxis.set_major_locator(MaxNLocator(5) if few else LogLocator(subs=(1, 2, 5)))
        right.yaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x >= 100 else f"{x:g}")
        right.yaxis.set_minor_locator(NullLocator())
    right.set_ylabel(label, color=COLOURS[1])
