"""Speed and memory of the command ``elmokit embed`` on a CPU.

    python benchmarks/embed.py [--text FILE] [--sentences N] [--output NAME] [--write]

FILE has one tokenised sentence per line; it is repeated if it has fewer than N lines. Without it,
the sentences are synthetic. The model has the published small size and random weights. Memory is
the resident size of the process, sampled twice per second. --write stores the table as
benchmarks/results/embed.md.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cpu import make_sentences, processor, versions

from elmokit import Elmo

HERE = Path(__file__).parent


def main() -> None:
    """Run the command, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, help="tokenised sentences, one per line")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--output", default="out.hdf5", help="out.hdf5, out.npz or out.parquet")
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder) / "text.txt", Path(folder) / "small"
        n_tokens = write_sentences(arguments.text, text, arguments.sentences)
        Elmo.random("small", device="cpu").save(model)
        command = [sys.executable, "-m", "elmokit", "embed", str(text)]
        command += [str(Path(folder) / arguments.output), "--model", str(model), "--tokenized"]
        command += ["--top", "--dtype", "float16", "--device", "cpu"]
        command += ["--forget-sentences"] * (arguments.sentences > 100_000)
        seconds, cpu_seconds, memory = watch(command)
        size = (Path(folder) / arguments.output).stat().st_size
    quarters = [max(part) for part in in_parts(memory, 4)]
    lines = [
        f"{versions()}, {processor()}, {os.cpu_count()} cores, {datetime.date.today()}.",
        "",
        f"`elmokit embed` of {arguments.sentences:,} sentences ({n_tokens:,} tokens) with small, "
        f"top layer, float16, to {Path(arguments.output).suffix[1:]} ({size / 1e9:.1f} GB): "
        f"{seconds:,.0f} s, {n_tokens / seconds:,.0f} tokens/s of wall time, "
        f"{n_tokens / cpu_seconds:,.0f} per CPU-second.",
        "",
        "| | first quarter | second | third | last |",
        "|---|---|---|---|---|",
        "| peak memory, MB | " + " | ".join(f"{m / 1e6:,.0f}" for m in quarters) + " |",
    ]
    text_out = "\n".join(lines) + "\n"
    print(text_out)
    if arguments.write:
        (HERE / "results" / "embed.md").write_text(text_out, encoding="utf-8")


def write_sentences(source: Path | None, target: Path, n: int) -> int:
    """Write n sentences; return their number of tokens."""
    if source is None:
        made = make_sentences(min(n, 20_000))
        lines: list[str] = [" ".join(tokens) for tokens in made]
    else:
        lines = source.read_text(encoding="utf-8").splitlines()
    n_tokens = 0
    with target.open("w", encoding="utf-8") as file:
        for line in itertools.islice(itertools.cycle(lines), n):
            file.write(line + "\n")
            n_tokens += len(line.split())
    return n_tokens


def watch(command: list[str]) -> tuple[float, float, list[int]]:
    """Run a command; return its seconds, CPU-seconds, and resident bytes over time."""
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(command)
    memory = []
    page = os.sysconf("SC_PAGE_SIZE")
    while process.poll() is None:
        try:
            memory.append(int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * page)
        except (OSError, IndexError):
            break
        time.sleep(0.5)
    if process.wait():
        raise SystemExit(f"{' '.join(command)} failed")
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return time.perf_counter() - started, cpu, [m for m in memory if m]


def in_parts(values: list[int], n: int) -> list[list[int]]:
    """Split a list into n parts of about the same length."""
    edges = [round(i * len(values) / n) for i in range(n + 1)]
    return [values[a:b] or [0] for a, b in itertools.pairwise(edges)]


if __name__ == "__main__":
    main()
