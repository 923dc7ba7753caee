"""Probabilities of words with the whole softmax on a CPU: blocks of logits against all at a time.

    python benchmarks/score.py [--model MODEL] [--rounds 5]

Scores random vectors in both ways in turn, on one thread, and prints the vectors per CPU-second of
each, the ratio, and the speed of the matrix product alone.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import torch
from cpu import matrix_flops, processor, versions

from elmokit.formats import DEFAULT_MODEL, find_model, read_model
from elmokit.nn import FullSoftmax

_VECTORS = 1490  # with 90,000 words, the slower way has the logits of half of them at a time


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = read_model(find_model(arguments.model)).config
    softmax = FullSoftmax(config.vocabulary_size, config.context.projection_dim)
    softmax.requires_grad_(False)
    h = torch.randn(_VECTORS, softmax.input_dim)
    targets = torch.randint(0, config.vocabulary_size, (_VECTORS,))
    speeds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(arguments.rounds + 1):
        for gradients in speeds:  # with gradients, all logits are computed first
            with torch.set_grad_enabled(gradients):
                start = time.process_time()
                softmax.score(h, targets)
                if number:
                    speeds[gradients].append(_VECTORS / (time.process_time() - start))
    peak = matrix_flops() / (2 * config.vocabulary_size * softmax.input_dim)
    ratios = [new / old for old, new in zip(speeds[True], speeds[False], strict=True)]
    print(f"{versions()}, {processor()}")
    print(f"all logits at a time: {median(speeds[True]):,.0f} vectors per CPU-second")
    print(f"blocks of logits: {median(speeds[False]):,.0f}")
    print(f"ratio: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"matrix product alone: {peak:,.0f}")


if __name__ == "__main__":
    main()
