"""Speed of pretraining, and how the time is spent.

    python benchmarks/pretrain.py TEXT [--sizes small medium original] [--minutes 2] [--tokens N]
                                  [--optimizer NAME] [--write]

TEXT is files or folders, as for ``elmokit pretrain``. Each size is trained for some minutes with
its default settings, except for N tokens per step and the optimizer: published clipping, character
CNN included, sampled softmax, both directions, each position counted once. --write stores the table
as benchmarks/results/pretrain.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from cpu import HERE, processor, versions

from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.recipe_sections import BatchSettings, OptimizerSettings
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.paths import RunPaths
from elmokit.pretrain.start import pretrain

PARTS = ("data", "token encoder", "context", "softmax", "optimizer")


def main() -> None:
    """Train, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="+", type=Path)
    parser.add_argument("--sizes", nargs="+", default=["small", "medium", "original"])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--tokens", type=int, help="tokens per step")
    parser.add_argument("--optimizer", default=OptimizerSettings.name, help="muon or adamw")
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        started = time.perf_counter()
        corpus = prepare(arguments.text, data / "train", TextOptions())
        seconds = time.perf_counter() - started
        valid = Path(folder) / "valid.txt"
        valid.write_text("A sentence to evaluate on .\n" * 100)
        lines = [
            f"{versions()}, one {where}, {os.cpu_count()} processors, "
            f"{datetime.date.today()}. {corpus.n_tokens:,} tokens, prepared at "
            f"{corpus.n_tokens / seconds:,.0f} tokens/s. "
            f"{arguments.tokens or BatchSettings.tokens:,} tokens per step, {arguments.optimizer}, "
            f"{arguments.minutes:g} minutes each.",
            "",
            "| | tokens/s | " + " | ".join(PARTS) + " |",
            "|---|---|" + "---|" * len(PARTS),
        ]
        for size in arguments.sizes:
            out = Path(folder) / size
            values: dict[str, Any] = {
                "model": {"size": size},
                "optimizer": {"name": arguments.optimizer},
                "training": {"minutes": arguments.minutes, "evaluate_every": 1.0},
            }
            if arguments.tokens:
                values["batch"] = {"tokens": arguments.tokens}
            paths = RunPaths(arguments.text, [valid], out, data)
            pretrain(Recipe.from_dict(values), paths, say=print)
            lines.append(row(size, out))
            print("\n".join(lines), flush=True)
    if arguments.write:
        (HERE / "results" / "pretrain.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def row(size: str, out: Path) -> str:
    """Return speed (without the first report) and shares of the time."""
    reports = [r for r in RunFolder(out).reports() if r["kind"] == "training"]
    first, last = reports[0], reports[-1]
    speed = (last["tokens"] - first["tokens"]) / max(1e-9, last["seconds"] - first["seconds"])
    shares = [r["time"] for r in reports[1:] if "time" in r] or [reports[0].get("time", {})]
    means = [sum(s.get(part, 0) for s in shares) / len(shares) for part in PARTS]
    return f"| {size} | {speed:,.0f} | " + " | ".join(f"{m:.0%}" for m in means) + " |"


if __name__ == "__main__":
    main()
