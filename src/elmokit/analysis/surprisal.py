"""How surprising each word of a sentence is to a model, in bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Value
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError
from elmokit.io.figures import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

_IN_A_ROW = 20  # tokens in a row of the picture at most
_MOST = 200  # in all of it


@dataclass(frozen=True)
class Surprisal:
    """-log2 p of a sentence's tokens."""

    tokens: list[str]
    known: list[bool]
    """False (T) where the vocabulary lacks the token, whose surprisal is that of <UNK>."""
    bits: dict[str, Floats]
    """(T,) by direction: forward, backward and mean; forward alone for a forward model."""

    def label(self, i: int) -> str:
        """A token, with a star behind it where the vocabulary lacks it."""
        return self.tokens[i] + ("" if self.known[i] else "*")


def surprisal(elmo: Elmo, text: Text) -> Surprisal:
    """How surprising each token is after what is before it, before what is after it, and on mean.

    Args:
        elmo: A model with a softmax.
        text: A sentence.
    """
    (score,) = elmo.score([text])
    if not score.tokens:
        raise InputError("the sentence has no token; give one word or more")
    bits = {"forward": -score.forward.astype(np.float64) / math.log(2)}
    if score.backward is not None:
        bits["backward"] = -score.backward.astype(np.float64) / math.log(2)
        bits["mean"] = (bits["forward"] + bits["backward"]) / 2
    return Surprisal(score.tokens, score.known.tolist(), bits)


def surprisal_report(found: Surprisal) -> Report:
    """A row a token; bars in the picture."""
    rows: list[list[Value]] = [
        [token, *(float(bits[i]) for bits in found.bits.values()), "" if known else "<UNK>"]
        for i, (token, known) in enumerate(zip(found.tokens, found.known, strict=True))
    ]
    means = {name: float(bits.mean()) for name, bits in found.bits.items()}
    title = f"Surprisal in bits, {list(means.values())[-1]:.2f} on average"
    n = min(_MOST, len(found.tokens))
    n_rows = math.ceil(n / _IN_A_ROW)
    in_a_row = math.ceil(n / n_rows)  # the rows about equally long
    size = (max(3.4, 0.8 + 0.33 * in_a_row), 0.6 + 1.6 * n_rows)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(n_rows, 1, sharey=True, squeeze=False)[:, 0]
        for k, axes in enumerate(panels):
            _draw_bars(axes, found, range(k * in_a_row, min(n, (k + 1) * in_a_row)))
            axes.set_xlim(-0.6, max(4, in_a_row) - 0.4)
            axes.set_ylabel("bits")
        notes = [] if all(found.known[:n]) else ["* not in the vocabulary"]
        if n < len(found.tokens):
            notes.append(f"the first {n} of {len(found.tokens):,} tokens")
        panels[0].set_title("; ".join(notes), loc="right", fontsize=7)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)

    columns = ["token", *found.bits, "scored as"]
    return Report(title, columns, rows, {"averages": means}, draw, size, digits=2)


def _draw_bars(axes: Any, found: Surprisal, here: range) -> None:
    places = np.arange(len(here))
    bars = [name for name in found.bits if name != "mean"]
    width = 0.8 / len(bars)
    for k, name in enumerate(bars):
        values = _drawn(found.bits[name], here)
        shifted = places + (k - (len(bars) - 1) / 2) * width
        axes.bar(shifted, values, width, color=COLOURS[k], label=name)
    if "mean" in found.bits:
        values = _drawn(found.bits["mean"], here)
        axes.plot(places, values, "_", color="black", markersize=9, label="mean")
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, [short(found.label(i)) for i in here], **slanted)
    axes.tick_params(axis="x", length=0)


def _drawn(values: Floats, here: range) -> Floats:
    """What a picture can show of some tokens: nothing where the surprisal is infinite."""
    some = values[here.start : here.stop]
    return np.where(np.isfinite(some), some, np.nan)
