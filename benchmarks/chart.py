"""Chart of docs/speed.md, drawn from the tables under benchmarks/results.

python benchmarks/chart.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
CHART = Path(__file__).parents[1] / "docs/pictures/speed.svg"
COLOURS = {"peer": "#999999", "elmokit": "#0072B2", "rounded": "#E69F00"}  # Okabe and Ito's
PANELS = {
    "cpu.md": (
        "One CPU thread",
        "tokens per CPU-second",
        [
            ("AllenNLP", "AllenNLP at batch 64, default use", "peer"),
            ("AllenNLP, vocabulary cached", "AllenNLP at batch 64, vocabulary cached", "peer"),
            ("ElmoKit, float32", "ElmoKit, words cached", "elmokit"),
            ("ElmoKit, int8", "ElmoKit, int8, words cached", "rounded"),
        ],
    ),
    "gpu.md": (
        "One H200",
        "tokens per second",
        [
            ("AllenNLP, batch 128", "AllenNLP at batch 128, from strings", "peer"),
            ("AllenNLP, cached, 2048", "AllenNLP at batch 2048, vocabulary cached", "peer"),
            ("ElmoKit, float32", "ElmoKit, float32, words cached", "elmokit"),
            ("ElmoKit, bfloat16", "ElmoKit, bfloat16, words cached", "rounded"),
        ],
    ),
}


def main() -> None:
    """Draw the chart and store it."""
    plt.rcParams |= {"font.size": 8, "svg.hashsalt": "elmokit"}
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 4.0), sharex="row", layout="constrained")
    for row, (file, (title, unit, bars)) in zip(axes, PANELS.items(), strict=True):
        text = (RESULTS / file).read_text(encoding="utf-8")
        for axis, size in zip(row, ("small", "original"), strict=True):
            speeds = [speed(text, size, name) for _, name, _ in bars]
            colours = [COLOURS[kind] for _, _, kind in bars]
            drawn = axis.barh([label for label, _, _ in bars], speeds, color=colours)
            axis.bar_label(drawn, [f"{s:,.0f}" for s in speeds], padding=2)
            axis.invert_yaxis()
            axis.set_xscale("log")
            axis.set_title(f"{title}, {size} model", fontsize=8)
            axis.set_xlabel(unit)
            axis.spines[["top", "right"]].set_visible(False)
            axis.margins(x=0.3)
            if axis is row[1]:
                axis.set_yticklabels([])
    figure.savefig(CHART, metadata={"Date": None})


def speed(text: str, size: str, name: str) -> float:
    """Return the first number of a row, found by the start of its name, in the table of a size."""
    table = text.split(f"**{size}**", 1)[1]
    found = re.search(rf"^\| {re.escape(name)}[^|]*\| ([\d,]+) \|", table, re.MULTILINE)
    if found is None:
        raise SystemExit(f"benchmarks/results has no row {name!r} for {size}; run the benchmarks")
    return float(found[1].replace(",", ""))


if __name__ == "__main__":
    main()
