"""Time to build and query an index, and its recall.

    python benchmarks/index.py TEXT… [--queries 200] [--write]

The bundled model indexes the text on the CPU. Then a sample of its occurrences is queried for the
ten nearest neighbours, by the graph and by brute force, which compares with every vector. --write
stores the table as benchmarks/results/index.md.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from cpu import HERE, processor, versions

from elmokit import Elmo
from elmokit.analysis.index.build import build_index
from elmokit.analysis.index.neighbours import neighbours
from elmokit.analysis.index.token_index import Index

K = 10


def main() -> None:
    """Build, query, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    elmo = Elmo.load(device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        cpu = time.process_time()
        made = build_index(elmo, arguments.text, Path(folder) / "index")
        cpu = time.process_time() - cpu
        index = Index.open(Path(folder) / "index")
        by_graph, by_all, whole, right = ask(index, elmo, arguments.queries)
    n_tokens = made.config.tokens
    wall = made.model_seconds + made.graph_seconds
    lines = [
        f"{versions()}, {processor()}, {torch.get_num_threads()} threads, "
        f"{datetime.date.today()}. {n_tokens:,} tokens, {made.config.rows:,} of them in the graph, "
        f"{made.bytes / 1e6:,.0f} MB.",
        "",
        "| | |",
        "|---|---|",
        f"| time to build the index, per million tokens | {1e6 * cpu / n_tokens:,.0f} CPU seconds, "
        f"{1e6 * wall / n_tokens / 60:.1f} minutes |",
        f"| share of reading and embedding | {made.model_seconds / wall:.0%} |",
        f"| the {K} nearest neighbours by the graph, median of {len(by_graph)} | "
        f"{1e3 * statistics.median(by_graph):.1f} ms |",
        f"| by comparing with every vector | {1e3 * statistics.median(by_all):.1f} ms |",
        f"| share of the true {K} that the graph finds | {right:.1%} |",
        f"| a complete query, with the model and static neighbours | "
        f"{1e3 * statistics.median(whole):.1f} ms |",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "index.md").write_text(text, encoding="utf-8")


def ask(
    index: Index, elmo: Elmo, n_queries: int
) -> tuple[list[float], list[float], list[float], float]:
    """Return seconds by graph, by brute force and of complete queries; and the graph's recall."""
    n_queries = min(n_queries, len(index.vectors))
    rows = np.random.default_rng(0).choice(len(index.vectors), n_queries, replace=False)
    by_graph: list[float] = []
    by_all: list[float] = []
    whole: list[float] = []
    found = 0
    index.search(np.asarray(index.vectors[rows[0]], np.float32), K)  # opens the graph
    for row in rows.tolist():
        number, position = index.place(row)
        tokens = index.sentence(number)
        vector = np.asarray(index.vectors[row], np.float32)
        times = [time.perf_counter()]
        quick = index.search(vector, K, exclude=tokens)
        times.append(time.perf_counter())
        exact = index.search(vector, K, exclude=tokens, brute=True)
        times.append(time.perf_counter())
        folded = [token.casefold() for token in tokens[: position + 1]]
        which = folded.count(folded[-1])
        neighbours(index, elmo, tokens, tokens[position], K, which=which)
        times.append(time.perf_counter())
        for some, seconds in zip((by_graph, by_all, whole), np.diff(times).tolist(), strict=True):
            some.append(seconds)
        found += len({r for r, _ in quick} & {r for r, _ in exact})
    return by_graph, by_all, whole, found / (K * n_queries)


if __name__ == "__main__":
    main()
