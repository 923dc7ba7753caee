"""The README's chart of speeds, from the tables under benchmarks/results.

python benchmarks/chart.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
COLOURS = {"peer": "#999999", "elmokit": "#0072B2", "rounded": "#E69F00"}  # Okabe and Ito's
PANELS = {
    "cpu.md": (
        "One CPU thread, tokens per CPU-second",
        [
            ("AllenNLP", "AllenNLP at batch 64, as people run it", "peer"),
            ("AllenNLP, vocabulary cached", "AllenNLP at batch 64, vocabulary cached", "peer"),
            ("ElmoKit, float32", "ElmoKit, words known", "elmokit"),
            ("ElmoKit, int8", "ElmoKit, int8, words known", "rounded"),
        ],
    ),
    "gpu.md": (
        "One H200, tokens per second",
        [
            ("AllenNLP, batch 128", "AllenNLP at batch 128, from strings", "peer"),
            ("AllenNLP, cached, 2048", "AllenNLP at batch 2048, vocabulary cached", "peer"),
            ("ElmoKit, float32", "ElmoKit, float32, words known", "elmokit"),
            ("ElmoKit, bfloat16", "ElmoKit, bfloat16, words known", "rounded"),
        ],
    ),
}


def main() -> None:
    """Draw and store."""
    plt.rcParams |= {"font.size": 8, "svg.hashsalt": "elmokit"}
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 3.6), sharex="row", layout="constrained")
    for row, (file, (title, bars)) in zip(axes, PANELS.items(), strict=True):
        text = (RESULTS / file).read_text(encoding="utf-8")
        for axis, size in zip(row, ("small", "original"), strict=True):
            speeds = [speed(text, size, name) for _, name, _ in bars]
            colours = [COLOURS[kind] for _, _, kind in bars]
            drawn = axis.barh([label for label, _, _ in bars], speeds, color=colours)
            axis.bar_label(drawn, [f"{s:,.0f}" for s in speeds], padding=2)
            axis.invert_yaxis()
            axis.set_xscale("log")
            axis.set_title(f"{title}: {size}", fontsize=8)
            axis.spines[["top", "right"]].set_visible(False)
            axis.margins(x=0.25)
            if axis is row[1]:
                axis.set_yticklabels([])
    figure.savefig(RESULTS / "speed.svg", metadata={"Date": None})


def speed(text: str, size: str, name: str) -> float:
    """The first figure of the row whose name begins so, in the table of a size."""
    table = text.split(f"**{size}**", 1)[1]
    found = re.search(rf"^\| {re.escape(name)}[^|]*\| ([\d,]+) \|", table, re.MULTILINE)
    if found is None:
        raise SystemExit(f"benchmarks/results has no row {name!r} for {size}; run the benchmarks")
    return float(found[1].replace(",", ""))


if __name__ == "__main__":
    main()
