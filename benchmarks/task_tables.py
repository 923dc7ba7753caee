"""The table and the pictures of benchmarks/tasks.py, from its records."""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Set
from pathlib import Path
from typing import Any

from task_sets import COLUMNS, DATA, TABLES, TF_IDF

Records = dict[int, dict[str, Any]]  # by seed
Columns = Set[tuple[str, str]]  # names of a set and of one of its columns
OUTDATED = (
    "† Measured with earlier settings, data or models; the gains, weights and seconds of the row "
    "then come from these, too."
)
NAMES = {
    TF_IDF: "TF-IDF",
    "glove": "GloVe",
    "token": "+ token layer",
    "elmo": "+ ELMo",
    "tuned": "+ tuned ELMo",
}


def record_path(folder: Path, name: str, column: str, seed: int, share: int) -> Path:
    """Where the record of a training is kept."""
    part = "" if share == 100 else f"-{share}"
    return folder / name / f"{column}{part}-{seed}.json"


def records_of(folder: Path, name: str, column: str, share: int = 100) -> Records:
    """Return the records of a column by seed; some seeds may be missing."""
    start = record_path(folder, name, column, 0, share).stem.removesuffix("0")
    paths = {path.stem.removeprefix(start): path for path in (folder / name).glob(f"{start}*.json")}
    seeds = sorted(int(seed) for seed in paths if seed.isdigit())  # not those of other shares
    return {seed: json.loads(paths[str(seed)].read_text(encoding="utf-8")) for seed in seeds}


def report(folder: Path, glove: str, outdated: Columns = frozenset()) -> list[str]:
    """Return the table of all records.

    Args:
        folder: Where the records are.
        glove: The file of static vectors.
        outdated: Columns with records that a new run would replace.
    """
    every = [*COLUMNS, TF_IDF]
    parts = [records_of(folder, name, column) for name in DATA for column in every]
    machines = {record["machine"] for found in parts for record in found.values()}
    lines = [
        f"`python benchmarks/tasks.py --data DIR --glove {glove} --write`",
        "",
        f"{'; '.join(sorted(machines))}; {datetime.date.today()}. Mean ± standard deviation of the "
        "test score over seeds. Gains are over the same seeds, ± their standard error. Error "
        "reduction: by how much ELMo lowers 100 − score. Seconds: one training with ELMo.",
        *(["", OUTDATED] if outdated else []),
        "",
        f"| | measure | seeds | {' | '.join(NAMES.values())} | gain over GloVe (error reduction) "
        "| gain over token layer | paper's error reduction | layer weights, γ | seconds |",
        "|---" * (len(NAMES) + 8) + "|",
    ]
    for name, data in DATA.items():
        found = {column: records_of(folder, name, column) for column in NAMES}
        if not any(found.values()):
            continue
        some = next(iter(next(some for some in found.values() if some).values()))
        elmo = found["elmo"]
        seconds = f"{statistics.mean(r['seconds'] for r in elmo.values()):.0f}" if elmo else ""
        cells = [
            name,
            some["measure"],
            _seeds(found),
            *(_cell(found[column], (name, column) in outdated) for column in NAMES),
            _gain(elmo, found["glove"], True),
            _gain(elmo, found["token"], False),
            data.paper,
            " / ".join(f"{weight:.2f}" for weight in _mix(elmo)),
            seconds,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += _further_tests(folder, outdated)
    for title, columns in TABLES.items():
        lines += _small_table(folder, title, columns, outdated)
    return lines


def _further_tests(folder: Path, outdated: Columns) -> list[str]:
    """Return a table of the sets that are tested on several files."""
    columns = {column: NAMES[column] for column in ("glove", "token", "elmo")}
    rows = []
    for name, data in DATA.items():
        for what in data.also:
            found = {
                column: {
                    seed: {"test": record["others"][what]}
                    for seed, record in records_of(folder, name, column).items()
                    if what in record["others"]
                }
                for column in columns
            }
            if all(found.values()):
                cells = [_cell(some, (name, column) in outdated) for column, some in found.items()]
                gains = [
                    _gain(found["elmo"], found[base], base == "glove")
                    for base in ("glove", "token")
                ]
                rows.append(f"| {name}, {what} | {' | '.join([*cells, *gains])} |")
    if not rows:
        return []
    head = f"| | {' | '.join(columns.values())} | gain over GloVe | gain over token layer |"
    return ["", "**Further test sets**", "", head, "|---" * 6 + "|", *rows]


def _small_table(folder: Path, title: str, columns: dict[str, str], outdated: Columns) -> list[str]:
    """Return a table of the sets that have records in all columns."""
    rows = []
    for name in DATA:
        found = [records_of(folder, name, column) for column in columns]
        if seeds := sorted(set.intersection(*map(set, found))):
            cells = [
                _cell({seed: some[seed] for seed in seeds}, (name, column) in outdated)
                for column, some in zip(columns, found, strict=True)
            ]
            measure = found[0][seeds[0]]["measure"]
            rows.append(f"| {name} | {measure} | {len(seeds)} | {' | '.join(cells)} |")
    if not rows:
        return []
    head = f"| | measure | seeds | {' | '.join(columns.values())} |"
    return ["", f"**{title}**", "", head, "|---" * (len(columns) + 3) + "|", *rows]


def _cell(found: Records, outdated: bool) -> str:
    values = [record["test"] for record in found.values()]
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}{'†' * outdated}"


def _seeds(found: dict[str, Records]) -> str:
    """Return the seeds of the main columns: a number, or fewest–most while some are missing."""
    counts = {len(found[column]) for column in ("glove", "token", "elmo")}
    return "–".join(map(str, sorted({min(counts), max(counts)})))


def _gain(better: Records, base: Records, reduction: bool) -> str:
    """Return the mean gain over paired seeds, its standard error, and the error reduction."""
    seeds = sorted(better.keys() & base.keys())
    if not seeds:
        return ""
    gains = [better[s]["test"] - base[s]["test"] for s in seeds]
    said = f"{statistics.mean(gains):+.1f}"
    if len(gains) > 1:
        said += f" ± {statistics.stdev(gains) / len(gains) ** 0.5:.1f}"
    errors = 100 - statistics.mean(base[s]["test"] for s in seeds)
    return f"{said} ({statistics.mean(gains) / errors:.0%})" if reduction and errors else said


def _mix(found: Records) -> list[float]:
    """Mean weights of the layers at the input, then γ; empty without records."""
    mixes = [record["mixes"].get("input") for record in found.values()]
    if not mixes or None in mixes:
        return []
    return [statistics.mean(column) for column in zip(*mixes, strict=True)]


def draw_layers(folder: Path, path: Path) -> None:
    """Draw the learned weights of the layers for each task, as Figure 2 of the paper does."""
    from matplotlib.figure import Figure

    mixes = {name: _mix(records_of(folder, name, "elmo"))[:-1] for name in DATA}
    rows = [(name, weights) for name, weights in mixes.items() if weights]
    if not rows:
        return
    figure = Figure(figsize=(5, 0.6 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow([weights for _, weights in rows], cmap="Blues", vmin=0, vmax=1)
    axes.set_aspect("auto")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    layers = ["token layer", *(f"LSTM {k}" for k in range(1, len(rows[0][1])))]
    axes.set_xticks(range(len(layers)), layers)
    for y, (_, weights) in enumerate(rows):
        for x, weight in enumerate(weights):
            colour = "white" if weight > 0.6 else "black"
            axes.text(x, y, f"{weight:.2f}", ha="center", va="center", color=colour)
    figure.colorbar(image, label="weight")
    figure.savefig(path, dpi=150)


def draw_shares(folder: Path, path: Path) -> None:
    """Draw scores against the share of the training examples, as Figure 1 of the paper does."""
    from matplotlib.figure import Figure

    curves = {name: _curves(folder, name) for name in DATA}
    names = [name for name, found in curves.items() if found]
    if not names:
        return
    figure = Figure(figsize=(4 * len(names), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for (column, points), mark in zip(curves[name].items(), "osD^v", strict=False):
            shares, means, spreads = zip(*points, strict=True)
            axes.errorbar(shares, means, spreads, marker=mark, label=NAMES[column], capsize=3)
        axes.set_xscale("log")
        ticks = sorted({share for points in curves[name].values() for share, *_ in points})
        axes.set_xticks(ticks, [f"{share}%" for share in ticks], minor=False)
        axes.minorticks_off()
        measure = next(iter(records_of(folder, name, "elmo").values()))["measure"]
        axes.set(xlabel="share of the training examples", ylabel=measure, title=name)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _curves(folder: Path, name: str) -> dict[str, list[tuple[int, float, float]]]:
    """Share, mean and deviation of every column with at least three shares."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for column in NAMES:
        points = []
        for share in range(1, 101):
            if some := records_of(folder, name, column, share):
                values = [record["test"] for record in some.values()]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                points.append((share, statistics.mean(values), spread))
        if len(points) > 2:
            found[column] = points
    return found
