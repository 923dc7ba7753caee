"""TF-IDF with softmax regression: what counting words reaches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import torch
from softmax_regression import Features, accuracy, sparse_parts, train
from torch import Tensor


def tf_idf(parts: Sequence[Sequence[Sequence[str]]]) -> list[list[dict[str, float]]]:
    """Vectors of length 1: log counts of terms, times the log inverse frequency in the first part.

    Terms that occur in fewer than two texts of the first part are left out.
    """
    frequency = Counter(term for terms in parts[0] for term in set(terms))
    n = len(parts[0])
    rarity = {term: math.log((1 + n) / (1 + k)) + 1 for term, k in frequency.items() if k > 1}
    found = []
    for part in parts:
        vectors = []
        for terms in part:
            counts = Counter(term for term in terms if term in rarity)
            vector = {term: (1 + math.log(k)) * rarity[term] for term, k in counts.items()}
            length = math.hypot(*vector.values()) or 1.0
            vectors.append({term: value / length for term, value in vector.items()})
        found.append(vectors)
    return found


def with_pairs(words: Sequence[str]) -> list[str]:
    """Words and pairs of neighbouring words."""
    return [*words, *(f"{a} {b}" for a, b in pairwise(words))]


def classify(
    features: Sequence[Features], labels: Sequence[Tensor], n_classes: int, what: str
) -> float:
    """Train on the first part, choose the penalty on the second; accuracy on the third."""
    weights = train(
        features[0],
        labels[0],
        n_classes,
        lambda weights: accuracy(features[1], labels[1], weights),
        what,
    )
    return accuracy(features[2], labels[2], weights)


def tf_idf_accuracy(
    terms: Sequence[Sequence[Sequence[str]]], labels: Sequence[Sequence[int]], what: str
) -> float:
    """Test accuracy; dev chooses the penalty.

    Args:
        terms: Terms of each text in the training, dev and test part.
        labels: Numbers of their labels.
        what: Name of the features, for the progress bar.
    """
    numbers = [torch.tensor(part) for part in labels]
    features = [Features(sparse=sparse) for sparse in sparse_parts(tf_idf(terms))]
    return classify(features, numbers, 1 + max(max(part) for part in labels), what)
