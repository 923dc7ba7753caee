"""Model shapes and training settings, compared at equal training time.

    python benchmarks/shapes.py TEXT... --valid TEXT [--seconds 60] [--groups shapes …]
                                [--data DIR] [--out DIR] [--write]

Each case is the recipe BASE with some settings changed. Perplexity is measured a few times during
training, on the validation text, each sentence alone, with the full softmax. All cases have the
same training time, without evaluations. --write stores table, curves and picture.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from cpu import HERE, processor, versions

from elmokit.errors import ElmoKitError
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.paths import RunPaths
from elmokit.pretrain.start import pretrain

BASE: dict[str, Any] = {
    "model": {
        "token_encoder": {
            "filters": [[1, 16], [2, 16], [3, 32], [4, 64], [5, 128], [6, 256]],
            "n_highway": 1,
        },
        "context": {"cell_dim": 2048, "projection_dim": 256},
    },
    "text": {"tokenizer": "english-hyphens", "vocabulary_size": 90_000},
    "batch": {"tokens": 131_072},
    "softmax": {"samples": 8192, "full_from": 0.8, "frequencies": False},
    "optimizer": {"name": "adamw", "learning_rate": 0.003, "warmup": 200},
    "training": {"dropout": 0.05, "evaluate_every": 0.2, "save_every": 1e6},
}
"""The settings of every case, before its changes."""

GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    "shapes": {
        "published small: 1024/128, 2048 filters": {"model": {"size": "small"}},
        "2048/256, 512 filters": {},
        "3072/256, 512 filters": {"model": {"context": {"cell_dim": 3072}}},
        "2048/384, 512 filters": {"model": {"context": {"projection_dim": 384}}},
        "three layers of 1536/256, 512 filters": {
            "model": {"context": {"cell_dim": 1536, "n_layers": 3}},
        },
    },
    "text": {
        "sentences alone, 90,000 words": {},
        "streams of sentences": {"batch": {"order": "stream"}},
        "50,000 words": {"text": {"vocabulary_size": 50_000}},
    },
    "softmax": {
        "8,192 words sampled, all in the last fifth": {},
        "8,192 words sampled": {"softmax": {"full_from": 1.0}},
        "all words": {"softmax": {"full_from": 0.0}},
        "adaptive": {"softmax": {"kind": "adaptive"}},
    },
    "optimizer": {
        "AdamW 0.003": {},
        "AdamW 0.0015": {"optimizer": {"learning_rate": 0.0015}},
        "AdamW 0.006": {"optimizer": {"learning_rate": 0.006}},
        "the paper's: Adagrad 0.2, clip 10, constant": {
            "optimizer": {
                "name": "adagrad",
                "learning_rate": 0.2,
                "schedule": "constant",
                "warmup": 0,
                "clip_norm": 10.0,
                "loss_scale": 20.0,
            }
        },
    },
    "batch and dropout": {
        "131,072 tokens a step, dropout 0.05": {},
        "65,536 tokens a step": {"batch": {"tokens": 65_536}},
        "262,144 tokens a step": {"batch": {"tokens": 262_144}},
        "dropout 0": {"training": {"dropout": 0.0}},
        "dropout 0.1": {"training": {"dropout": 0.1}},
    },
}


def main() -> None:
    """Train every case, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="+", type=Path)
    parser.add_argument("--valid", nargs="+", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0, help="training time of each case")
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--data", type=Path, default=Path("shapes-data"), help="prepared text")
    parser.add_argument("--out", type=Path, default=Path("shapes-runs"), help="folder of the runs")
    parser.add_argument("--write", action="store_true", help="store the results")
    arguments = parser.parse_args()
    results = HERE / "results" / "shapes.json"
    found = json.loads(results.read_text()) if results.exists() else {}
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    about = f"{versions()}, one {where}, {datetime.date.today()}"
    base = None
    train(arguments, {}, 3.0, arguments.out / "first")  # compiles kernels before timing
    for group in arguments.groups:
        cases: dict[str, Any] = {}
        for name, changes in GROUPS[group].items():
            out = arguments.out / f"{list(GROUPS).index(group)}-{len(cases)}"
            if changes:
                cases[name] = train(arguments, changes, arguments.seconds, out)
            else:  # the same case occurs in every group
                base = base or train(arguments, changes, arguments.seconds, out)
                cases[name] = base
            print(name, cases[name], flush=True)
        found[group] = {"about": about, "seconds": arguments.seconds, "cases": cases}
        print(table(group, found[group]), flush=True)
        if arguments.write:
            results.write_text(json.dumps(found, indent=1) + "\n")
            text = "\n".join(table(name, result) for name, result in found.items())
            results.with_suffix(".md").write_text(text, encoding="utf-8")
            draw(found, Path(__file__).parents[1] / "docs/pictures/shapes.svg")


def train(
    arguments: argparse.Namespace, changes: dict[str, Any], seconds: float, out: Path
) -> dict[str, Any]:
    """Train one case; return its results, or why it failed."""
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    recipe = Recipe.from_dict(BASE).changed(changes)
    recipe = recipe.changed({"training": {"minutes": seconds / 60}})
    try:
        pretrain(recipe, RunPaths(arguments.text, arguments.valid, out, arguments.data), say=quiet)
    except ElmoKitError as error:
        return {"failed": str(error)}
    reports = RunFolder(out).reports()
    training = [r for r in reports if r["kind"] == "training"]
    evaluations = [r for r in reports if r["kind"] == "evaluation"]
    return {
        "perplexity": evaluations[-1]["mean"],
        "unknown_rate": evaluations[-1]["unknown_rate"],
        "tokens": training[-1]["tokens"],
        "tokens_per_second": training[-1]["tokens"] / training[-1]["seconds"],
        "shares": training[-1].get("time", {}),
        "curve": [[r["seconds"], r["mean"]] for r in evaluations if not r["whole"]],
    }


def quiet(line: str) -> None:
    """Print progress to standard error, apart from the tables."""
    print(line, file=sys.stderr, flush=True)


def table(group: str, result: dict[str, Any]) -> str:
    """Return a group of cases as a Markdown table."""
    lines = [
        f"**{group}**: {result['seconds']:g} seconds of training each. {result['about']}.",
        "",
        "| | perplexity | million tokens seen | tokens/s |",
        "|---|---|---|---|",
    ]
    for name, case in result["cases"].items():
        if "failed" in case:
            lines.append(f"| {name} | {case['failed']} | | |")
        else:
            lines.append(
                f"| {name} | {case['perplexity']:.1f} | {case['tokens'] / 1e6:.0f} | "
                f"{case['tokens_per_second']:,.0f} |"
            )
    return "\n".join(lines) + "\n"


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw perplexity over training time, one panel per group."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    from elmokit.io.figures import COLOURS, MARKERS

    plt.rcParams |= {"font.size": 7, "svg.hashsalt": "elmokit"}
    n_rows = -(-len(found) // 2)
    figure, panels = plt.subplots(
        n_rows, 2, figsize=(7.2, 2.6 * n_rows), layout="constrained", squeeze=False
    )
    for axes in panels.flat[len(found) :]:
        axes.set_visible(False)
    for axes, (group, result) in zip(panels.flat, found.items(), strict=False):
        for k, (name, case) in enumerate(result["cases"].items()):
            if "failed" not in case:
                seconds, perplexities = zip(*case["curve"], strict=True)
                axes.plot(seconds, perplexities, label=name, color=COLOURS[k], marker=MARKERS[k])
        axes.set_yscale("log")
        axes.margins(y=0.25)  # room for the legend above the curves
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_title(group)
        axes.set_xlabel("training time (s)")
        axes.set_ylabel("perplexity")
        axes.legend(fontsize=6)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
