"""Film reviews: mean ELMo vectors against TF-IDF, both with logistic regression.

    python benchmarks/reviews.py rt-polarity.all imdb.train.tsv [--reviews 1000] [--write]

A line is a review: its label (0 or neg, 1 or pos), white space, and the text; in a file .tsv the
text is the last column. A random sample of the reviews is split in halves for training and testing,
several times. The strength of the penalty is chosen on a fifth of the training reviews. --write
stores the table as benchmarks/results/reviews.md.
"""

from __future__ import annotations

import argparse
import datetime
import math
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from cpu import HERE, processor, versions
from torch import Tensor
from torch.nn import functional as F

from elmokit import Elmo
from elmokit.text.sentences import split_sentences

PENALTIES = [10.0**k for k in range(-5, 2)]


def main() -> None:
    """Compare on every file, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--reviews", type=int, default=1000)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    n = arguments.reviews
    elmo = Elmo.load(device="cpu")
    table = [
        f"{versions()}, {processor()}, {torch.get_num_threads()} threads, "
        f"{datetime.date.today()}. {n:,} reviews, {arguments.splits} random splits in halves. "
        "Accuracy with the standard deviation over the splits, and CPU seconds for the features of "
        "all reviews.",
        "",
        "| reviews | words per review | features | accuracy | CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for file in arguments.files:
        drawn = random.Random(0).sample(read(file), n)
        labels = torch.tensor([float(label) for label, _ in drawn])
        texts = [text for _, text in drawn]
        length = statistics.mean(len(text.split()) for text in texts)
        started = time.process_time()
        means = mean_vectors(elmo, texts)
        elmo_seconds = time.process_time() - started
        found: dict[str, list[float]] = {"TF-IDF, words and pairs": [], "mean ELMo vectors": []}
        tf_idf_seconds = 0.0
        for split in range(arguments.splits):
            order = torch.randperm(n, generator=torch.Generator().manual_seed(split))
            train, test = order[: n // 2], order[n // 2 :]
            started = time.process_time()
            counts = tf_idf([texts[i] for i in train], [texts[i] for i in test])
            tf_idf_seconds = time.process_time() - started
            scaled = (means - means[train].mean(0)) / means[train].std(0)
            features = (counts, (scaled[train], scaled[test]))
            for accuracies, (seen, unseen) in zip(found.values(), features, strict=True):
                right = (classify(seen, labels[train], unseen) > 0) == (labels[test] > 0)
                accuracies.append(right.double().mean().item())
        seconds = (tf_idf_seconds, elmo_seconds)
        for (name, accuracies), cpu in zip(found.items(), seconds, strict=True):
            mean, spread = statistics.mean(accuracies), statistics.stdev(accuracies)
            row = f"| {file.name} | {length:.0f} | {name} | {mean:.3f} ± {spread:.3f} | {cpu:.1f} |"
            print(row, flush=True)
            table.append(row)
    text = "\n".join(table) + "\n"
    print("\n" + text)
    if arguments.write:
        (HERE / "results" / "reviews.md").write_text(text, encoding="utf-8")


def read(file: Path) -> list[tuple[bool, str]]:
    """Labels and texts of a file."""
    # not splitlines, which also splits at characters that occur within reviews
    lines = filter(None, file.read_text(encoding="utf-8", errors="replace").split("\n"))
    cut = [line.split("\t" if file.suffix == ".tsv" else " ") for line in lines]
    column = -1 if file.suffix == ".tsv" else 1
    return [
        (parts[0] in ("1", "pos"), " ".join(parts[column:]).replace("<br />", " ")) for parts in cut
    ]


def mean_vectors(elmo: Elmo, texts: Sequence[str]) -> Tensor:
    """The mean over all tokens (N, D) of the average of the layers, read sentence by sentence."""
    sentences = [[elmo.tokenize(s) for s in split_sentences(text)] for text in texts]
    vectors = iter(elmo.encode([s for some in sentences for s in some], "average"))
    means = [np.concatenate([next(vectors) for _ in some]).mean(0) for some in sentences]
    return torch.from_numpy(np.stack(means))


def tf_idf(train: Sequence[str], test: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Vectors of length 1: log counts of words and word pairs, times the log inverse frequency."""
    counts = [[Counter(terms(text)) for text in some] for some in (train, test)]
    frequency = Counter(term for count in counts[0] for term in count)
    column = {term: k for k, (term, n) in enumerate(frequency.items()) if n > 1}
    found = []
    for some in counts:
        vectors = torch.zeros(len(some), len(frequency))
        for row, count in enumerate(some):
            for term, n in count.items():
                if term in column:
                    rarity = math.log((1 + len(train)) / (1 + frequency[term])) + 1
                    vectors[row, column[term]] = (1 + math.log(n)) * rarity
        found.append(F.normalize(vectors[:, list(column.values())]))
    return found[0], found[1]


def terms(text: str) -> list[str]:
    """Words and pairs of neighbouring words."""
    words = re.findall(r"\w+", text.lower())
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def classify(train: Tensor, labels: Tensor, test: Tensor) -> Tensor:
    """Scores of test vectors; the penalty is chosen on the last fifth of the training vectors."""
    n = len(train) * 4 // 5

    def accuracy(penalty: float) -> float:
        scores = fit(train[:n], labels[:n], penalty)(train[n:])
        return ((scores > 0) == (labels[n:] > 0)).double().mean().item()

    return fit(train, labels, max(PENALTIES, key=accuracy))(test)


def fit(vectors: Tensor, labels: Tensor, penalty: float) -> Callable[[Tensor], Tensor]:
    """Logistic regression with an L2 penalty; returns the function that scores vectors."""
    weights = torch.zeros(vectors.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.binary_cross_entropy_with_logits(vectors @ weights + bias, labels)
        value = value + penalty * (weights**2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return lambda others: (others @ weights + bias).detach()


if __name__ == "__main__":
    main()
