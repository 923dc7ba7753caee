"""Tokens per CPU-second on one thread, beside the way the original software runs.

    python benchmarks/cpu.py [--write]

The baseline does what AllenNLP does with the same modules: every token, repeated or not, through
the character CNN at 50 characters, sentences in batches of 64 in the order given. --write stores
the table under benchmarks/results.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import elmokit
from elmokit import Elmo

SENTENCES = {"small": 1000, "original": 64}


def make_sentences(n: int, seed: int = 0) -> list[list[str]]:
    """Sentences of 3 to 80 tokens whose words repeat as they do in text (Zipf's law)."""
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    lengths = [min(80, max(3, int(rng.gammavariate(3, 7)))) for _ in range(n)]
    return [rng.choices(vocabulary, weights, k=length) for length in lengths]


@torch.inference_mode()
def run_as_allennlp(elmo: Elmo, sentences: list[list[str]]) -> list[np.ndarray]:
    """All layers, as the original software computes them."""
    results = []
    for first in range(0, len(sentences), 64):
        batch = [["<S>", *s, "</S>"] for s in sentences[first : first + 64]]
        lengths = torch.tensor([len(s) for s in batch])
        padded = [s + [""] * (int(lengths.max()) - len(s)) for s in batch]
        ids = np.stack([elmo.alphabet.encode(s, columns=50) for s in padded])
        tokens = elmo.bilm.token_encoder(torch.from_numpy(ids))
        layers, _ = elmo.bilm(tokens, lengths)
        stacked = torch.stack(layers, 1).numpy()
        results += [stacked[i, :, 1 : len(s) - 1] for i, s in enumerate(batch)]
    return results


def measure(run: Callable[[], list[np.ndarray]], n_tokens: int) -> tuple[float, list[np.ndarray]]:
    """Tokens per CPU-second, and the result."""
    started = time.process_time()
    result = run()
    return n_tokens / (time.process_time() - started), result


def row(size: str, n: int) -> str:
    """The table's row for a model of a published size, over n sentences."""
    elmo = Elmo.random(size, device="cpu")
    sentences = make_sentences(n)
    n_tokens = sum(map(len, sentences))
    elmo.encode([["warm", "up"]])  # so that nobody pays for what runs once
    baseline, expected = measure(lambda: run_as_allennlp(elmo, sentences), n_tokens)
    cold, found = measure(lambda: elmo.encode(sentences, "all"), n_tokens)
    warm, _ = measure(lambda: elmo.encode(sentences, "all"), n_tokens)
    apart = max(np.abs(a - b).max() for a, b in zip(found, expected, strict=True))
    return (
        f"| {size} | {baseline:,.0f} | {cold:,.0f} | {warm:,.0f} | "
        f"{cold / baseline:.1f}× – {warm / baseline:.1f}× | {apart:.1e} |"
    )


def main() -> None:
    """Run both sizes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="store the table")
    write = parser.parse_args().write
    torch.set_num_threads(1)
    lines = [
        f"ElmoKit {elmokit.__version__}, PyTorch {torch.__version__}, Python "
        f"{platform.python_version()}, {_processor()}, one thread, {datetime.date.today()}",
        "",
        "| size | as AllenNLP runs | ElmoKit, first time | ElmoKit, words known | ratio |"
        " largest difference |",
        "|---|---|---|---|---|---|",
    ]
    lines += [row(size, n) for size, n in SENTENCES.items()]
    lines.append("\nTokens per CPU-second, all layers, random weights, made-up sentences.")
    table = "\n".join(lines)
    print(table)
    if write:
        results = Path(__file__).parent / "results" / "cpu.md"
        results.parent.mkdir(exist_ok=True)
        results.write_text(table + "\n", encoding="utf-8")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    main()
