"""Shards on several processes: scaling, and what an engine costs.

    python benchmarks/cluster.py [--sentences N] [--shards N] [--rounds N] [--write]

Compares ``elmokit embed --engine local`` with 1 to as many workers as there are cores with
``elmokit embed`` in one process, one thread each, to Parquet, all layers, float16. The model has
the published small size and random weights. The overhead of a shard is measured with a tiny model,
in many shards and in one. Ray is measured if it is installed, on a cluster that is started for it.
--write stores the table as benchmarks/results/cluster.md.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from cpu import make_sentences, processor, versions

from elmokit import Elmo
from elmokit.cluster.local_engine import n_cores
from elmokit.cluster.shard_writer import open_parquet_writer
from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.embed.writers import vector_lists, vectors_type
from elmokit.io.job import Layout

HERE = Path(__file__).parent


def main() -> None:
    """Run the commands, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=12_000)
    parser.add_argument("--shards", type=int, default=200, help="for the overhead of a shard")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="store the tables")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        lines = tables(Path(name), arguments.sentences, arguments.shards, arguments.rounds)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "cluster.md").write_text(text, encoding="utf-8")


def tables(folder: Path, n_sentences: int, n_shards: int, rounds: int) -> list[str]:
    """All results as Markdown."""
    text, model = folder / "text.txt", folder / "small"
    sentences = make_sentences(n_sentences)
    text.write_text("".join(" ".join(tokens) + "\n" for tokens in sentences))
    n_tokens = sum(map(len, sentences))
    Elmo.random("small", device="cpu").save(model)
    common = [str(text), "--model", str(model), "--tokenized", "--device", "cpu"]
    rows = max(1, n_sentences // 4)  # a shard starts with an empty cache of words: small ones cost
    commands = {"elmokit embed, one process": [*common[:1], str(folder / "a.parquet"), *common[1:],
                                               "--dtype", "float16"]}  # fmt: skip
    for n in range(1, n_cores() + 1):
        name = f"engine local, {n} worker{'s' * (n > 1)}"
        commands[name] = [*common[:1], str(folder / "out"), *common[1:], "--engine", "local",
                          "--workers", str(n), "--shard-rows", str(rows)]  # fmt: skip
    before = os.getloadavg()[0]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):  # in turn: the load of the machine changes
        for name, command in commands.items():
            found[name].append(timed(folder, command))
    wall = {name: statistics.median(w for w, _ in times) for name, times in found.items()}
    cpu = {name: statistics.median(c for _, c in times) for name, times in found.items()}
    base = next(iter(commands))
    lines = [
        f"{versions()}, pyarrow {pa.__version__}, {processor()}, {n_cores()} cores, "
        f"{datetime.date.today()}.",
        "",
        f"{n_sentences:,} sentences ({n_tokens:,} tokens) with small, all layers, float16, to "
        f"Parquet, one thread per process, median of {rounds} rounds. Times include the start of "
        f"Python and the model. Shards of {rows:,} rows. Load average before: {before:.1f}.",
        "",
        "| | seconds | CPU-seconds | tokens per second | × one process | CPU-seconds × |",
        "|---|---|---|---|---|---|",
    ]
    for name in commands:
        lines.append(
            f"| {name} | {wall[name]:.1f} | {cpu[name]:.1f} | {n_tokens / wall[name]:,.0f} | "
            f"{wall[base] / wall[name]:.2f} | {cpu[name] / cpu[base]:.2f} |"
        )
    lines += ["", *overheads(folder, n_shards, rounds), "", write_speed()]
    return lines


def timed(folder: Path, command: list[str]) -> tuple[float, float]:
    """Seconds and CPU-seconds of ``elmokit embed``."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    started, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", "elmokit", "embed", *command],
        env=os.environ | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    after = os.times()
    seconds = time.perf_counter() - started
    cpu = after.children_user + after.children_system
    print(f"{seconds:.1f} s: embed {' '.join(command[2:])}", file=sys.stderr, flush=True)
    return seconds, cpu - before.children_user - before.children_system


def overheads(folder: Path, n_shards: int, rounds: int) -> list[str]:
    """What a shard costs besides its vectors, by engine."""
    text, model = folder / "tiny.txt", folder / "tiny"
    text.write_text("a b c\n" * (5 * n_shards))
    config = ModelConfig(
        TokenEncoderConfig(filters=((1, 4),), n_highway=0),
        ContextConfig(cell_dim=8, projection_dim=4, n_layers=1),
    )
    Elmo.random(config, device="cpu").save(model)
    engines = {"local": ["local"]}
    if importlib.util.find_spec("ray") is not None:
        engines["ray"] = ["ray", "--address", "local"]
    lines = ["| overhead per shard, one worker | ms |", "|---|---|"]
    for name, engine in engines.items():
        differences = []
        for _ in range(rounds):
            seconds = []
            for rows in (5, 5 * n_shards):
                command = [str(text), str(folder / "out"), "--model", str(model), "--device", "cpu"]
                command += ["--workers", "1", "--shard-rows", str(rows), "--engine", *engine]
                seconds.append(timed(folder, command)[0])
            differences.append((seconds[0] - seconds[1]) / (n_shards - 1) * 1000)
        lines.append(f"| {name} | {statistics.median(differences):.1f} |")
    if "ray" not in engines:
        lines += ["", "Ray is not installed here; its overhead was not measured."]
    return lines


def write_speed() -> str:
    """How fast one process writes vectors."""
    layout = Layout((), 1024, "float16")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(25, 1024)).astype(np.float16) for _ in range(640)]
    schema = pa.schema([pa.field("vectors", vectors_type(layout))])
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(5):
            started = time.process_time()
            table = pa.Table.from_arrays(vector_lists(arrays, layout), schema=schema)
            with open_parquet_writer(Path(folder) / "a.parquet", schema, ["vectors"]) as file:
                file.write_table(table)
            n_bytes = sum(array.nbytes for array in arrays)
            speeds.append(n_bytes / (time.process_time() - started))
    return (
        f"One process writes {statistics.median(speeds) / 1e6:,.0f} MB of float16 vectors to "
        "Parquet per CPU-second."
    )


if __name__ == "__main__":
    main()
