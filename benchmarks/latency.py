"""One sentence at a time on one CPU thread: float32, int8, and the time to read the weights.

    python benchmarks/latency.py [--model MODEL] [--rounds 60] [--write]

Every time step reads the recurrent weights of its LSTM again. Weights stored in eight bits, as in
the bundled model, are read as float16. The first row is the same model with weights that eight bits
cannot hold. The floor is the time these reads take alone, in the order of the steps; a processor
with a large cache reads them faster than memory could deliver them, so the table has both. All rows
are measured in turn, round by round, and a ratio is the median over the rounds. On a machine with
other work, CPU time is the fairer figure; the load average is printed. --write stores the table as
benchmarks/results/latency.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from cpu import HERE, processor, versions

from elmokit import Elmo
from elmokit.formats import DEFAULT_MODEL
from elmokit.nn import ProjectedLSTM

SENTENCES = [
    line.split()
    for line in (
        "The bank raised its rates again last week because prices in the city had risen more than "
        "anyone expected .",
        "She left the plant on the window sill and forgot to water it until its leaves turned "
        "quite yellow .",
        "After the match the coach said that his players were tired but had never stopped "
        "believing they could win .",
        "The new bridge , which cost twice as much as planned , will open to traffic early next "
        "year .",
        "Researchers found that the bats return to the same cave every spring and that their "
        "young learn the route .",
    )
]
BASE = "float32, weights that eight bits cannot hold"
MARKS = 2  # the LSTMs also read the marks at both ends of a sentence


def main() -> None:
    """Measure, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    exact = Elmo.load(arguments.model, device="cpu")
    other = nudged(Elmo.load(arguments.model, device="cpu"))
    rounded = Elmo.load(arguments.model, device="cpu", quantize="int8")
    layers = exact.encode(SENTENCES, "all")
    layers_int8 = [rounded.encode([sentence], "all")[0] for sentence in SENTENCES]
    mean, lowest = cosines(layers, layers_int8)
    length = len(SENTENCES[0])
    weights = recurrent_weights(exact)
    n_bytes = 4 * sum(w.numel() for w in weights) * (length + MARKS)
    found = in_turn(
        {
            BASE: sentence_by_sentence(other),
            "float32": sentence_by_sentence(exact),
            '`quantize="int8"`': sentence_by_sentence(rounded),
            "reading the recurrent weights at every step, float32": reads(weights, length, 4),
            "the same, float16": reads(weights, length, 2),
            "the same, int8": reads(weights, length, 1),
            "the same from memory, float32": reads_from_memory(n_bytes),
            "the same from memory, float16": reads_from_memory(n_bytes // 2),
            "the same from memory, int8": reads_from_memory(n_bytes // 4),
        },
        arguments.rounds,
    )
    lines = [
        f"{versions()}, {processor()}, {datetime.date.today()}. One sentence of {length} tokens at "
        f"a time, words cached, all layers, one thread; medians of {arguments.rounds} rounds. Load "
        f"average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        "",
        "| | CPU time, ms | wall time, ms | × faster than the first row, CPU time |",
        "|---|---|---|---|",
        *table_rows(found),
        "",
        f"The recurrent weights of all steps are {n_bytes / 1e9:.2f} GB in float32, half in "
        "float16, a quarter in int8.",
        f"Cosine similarity between int8 and float32, {len(SENTENCES)} sentences: mean {mean:.4f} "
        f"in the layer where it is lowest, single token at least {lowest:.4f}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "latency.md").write_text(text, encoding="utf-8")


def sentence_by_sentence(elmo: Elmo) -> Callable[[int], object]:
    """Return a function that encodes one sentence, another in each round."""
    return lambda number: elmo.encode([SENTENCES[number % len(SENTENCES)]], "all")


def nudged(elmo: Elmo) -> Elmo:
    """Change every weight of the LSTMs by up to a thousandth."""
    with torch.no_grad():
        for stack in elmo.bilm.directions:
            for weight in stack.parameters():
                weight.mul_(1 + 1e-3 * torch.rand_like(weight))
    return elmo


def recurrent_weights(elmo: Elmo) -> list[torch.Tensor]:
    """Return the weights that each step of each LSTM reads, one flat tensor per LSTM."""
    found = []
    for lstm in (lstm for stack in elmo.bilm.directions for lstm in stack):
        assert isinstance(lstm, ProjectedLSTM)
        used = [lstm.state_weight] + ([] if lstm.projection is None else [lstm.projection])
        found.append(torch.cat([weight.detach().flatten() for weight in used]))
    return found


def reads(weights: list[torch.Tensor], length: int, width: int) -> Callable[[int], object]:
    """Return a function that reads the weights as the LSTMs do: all steps of one, then the next.

    Args:
        weights: One tensor per LSTM.
        length: Tokens of the sentence.
        width: Bytes per weight: 4, 2 or 1.
    """
    parts = [weight[: len(weight) * width // 4].clone() for weight in weights]

    def read(_: int) -> None:
        for part in parts:
            for _step in range(length + MARKS):
                part.sum()

    return read


def reads_from_memory(n_bytes: int) -> Callable[[int], object]:
    """Return a function that reads this many bytes once; they must not fit in the cache."""
    numbers = torch.ones(n_bytes // 4)
    return lambda _: numbers.sum()


def in_turn(
    runs: dict[str, Callable[[int], object]], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Run each once per round; return the seconds of CPU time and of wall time of every round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for number in range(-1, rounds):  # the first round is a warm-up
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run(number)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if number >= 0:
                found[name].append((cpu, wall))
    return found


def table_rows(found: dict[str, list[tuple[float, float]]]) -> list[str]:
    """Return one row per measurement: medians, and the median ratio to the first by round."""
    rows = []
    for name, seconds in found.items():
        cpu, wall = (1e3 * statistics.median(part) for part in zip(*seconds, strict=True))
        pairs = zip(found[BASE], seconds, strict=True)
        ratio = statistics.median(base[0] / own[0] for base, own in pairs)
        rows.append(f"| {name} | {cpu:.1f} | {wall:.1f} | {ratio:.1f} |")
    return rows


def cosines(exact: list[np.ndarray], rounded: list[np.ndarray]) -> tuple[float, float]:
    """Return the mean cosine similarity of the layer with the lowest one, and the lowest token."""
    a, b = np.concatenate(exact, 1), np.concatenate(rounded, 1)
    found = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    return float(found.mean(1).min()), float(found.min())


if __name__ == "__main__":
    main()
