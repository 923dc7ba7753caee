"""Scores of coreference: MUC, B³, CEAFφ4 and their mean, for predicted mentions.

A cluster is a set of mentions of the same entity. The measures compare the gold clusters of a
document with the predicted ones; counts are added up over all documents before they are divided.
Mentions are equal if their words are.

- MUC (Vilain et al., 1995) counts links: a cluster of n mentions has n - 1.
- B³ (Bagga and Baldwin, 1998) is the mean over mentions: how much of its cluster is right?
- CEAFφ4 (Luo, 2005) assigns predicted clusters to gold clusters one to one. Two clusters are alike
  to the degree 2 |A ∩ B| / (|A| + |B|).

The values are those of the reference scorer of the CoNLL-2012 shared task (Pradhan et al., 2014),
which scores clusters of one mention (singletons) like all others. OntoNotes has none; other data
sets do, and there the singletons raise B³ and CEAFφ4. ``without singletons`` leaves them out of
both the gold and the predicted clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.tasks.measures.assignment import best_assignment
from elmokit.tasks.measures.paired_values import check_lengths
from elmokit.tasks.measures.scores import Scores, mean, ratio

Clusters = Collection[Collection[Hashable]]
"""The clusters of a document; a mention is in one of them."""

MEASURES = ("muc", "b3", "ceaf")


@dataclass
class _Counts:
    """Parts and wholes of precision and recall, added up over documents."""

    correct_predicted: float = 0.0
    predicted: float = 0.0
    correct_gold: float = 0.0
    gold: float = 0.0

    def add(
        self, correct_predicted: float, predicted: float, correct_gold: float, gold: float
    ) -> None:
        self.correct_predicted += correct_predicted
        self.predicted += predicted
        self.correct_gold += correct_gold
        self.gold += gold

    @property
    def precision(self) -> float:
        return ratio(self.correct_predicted, self.predicted)

    @property
    def recall(self) -> float:
        return ratio(self.correct_gold, self.gold)

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def cluster_scores(gold: Sequence[Clusters], predicted: Sequence[Clusters]) -> Scores:
    """Scores of the clusters of documents.

    Args:
        gold: The correct clusters of each document.
        predicted: Its predicted clusters.

    Returns:
        The mean F1 of the three measures, with singletons if there are any. Also the mean without
        them, precision, recall and F1 of every measure, and those of the mentions.
    """
    check_lengths(gold, predicted, "documents")
    every = _measures(gold, predicted)
    larger = _measures([_larger(some) for some in gold], [_larger(some) for some in predicted])
    others = {"avg f1 without singletons": mean([larger[name].f1 for name in MEASURES])}
    for name, counts in every.items():
        others[f"{name} precision"] = counts.precision
        others[f"{name} recall"] = counts.recall
        others[f"{name} f1"] = counts.f1
    return Scores(
        name="avg f1",
        value=mean([every[name].f1 for name in MEASURES]),
        others=others,
        n=len(gold),
        unit="documents",
    )


def _larger(clusters: Clusters) -> list[Collection[Hashable]]:
    return [cluster for cluster in clusters if len(cluster) > 1]


def _measures(gold: Sequence[Clusters], predicted: Sequence[Clusters]) -> dict[str, _Counts]:
    """The counts of the measures, and of the mentions."""
    counts = {name: _Counts() for name in (*MEASURES, "mention")}
    for some_gold, some_predicted in zip(gold, predicted, strict=True):
        document = _Document(some_gold, some_predicted)
        counts["muc"].add(*document.muc())
        counts["b3"].add(*document.b3())
        counts["ceaf"].add(*document.ceaf())
        counts["mention"].add(*document.mentions())
    return counts


class _Document:
    """How often a mention is in gold cluster a and in predicted cluster b."""

    def __init__(self, gold: Clusters, predicted: Clusters) -> None:
        self.gold, self.predicted = (
            [set(cluster) for cluster in some if len(cluster)] for some in (gold, predicted)
        )
        place = {mention: b for b, cluster in enumerate(self.predicted) for mention in cluster}
        self.common = Counter(
            (a, place[mention])
            for a, cluster in enumerate(self.gold)
            for mention in cluster
            if mention in place
        )

    def mentions(self) -> tuple[float, float, float, float]:
        both = sum(self.common.values())
        return both, _size(self.predicted), both, _size(self.gold)

    def muc(self) -> tuple[float, float, float, float]:
        gold, predicted = (
            self._links(clusters, side) for clusters, side in ((self.gold, 0), (self.predicted, 1))
        )
        return *predicted, *gold

    def _links(self, clusters: Sequence[Collection[Hashable]], side: int) -> tuple[float, float]:
        """Links that the other side has as well, and all links of one side."""
        parts = Counter(pair[side] for pair in self.common)
        matched: Counter[int] = Counter()
        for pair, n in self.common.items():
            matched[pair[side]] += n
        # a mention that the other side lacks is a part of its own
        found = sum(matched[k] - parts[k] for k in parts)
        return found, sum(len(cluster) - 1 for cluster in clusters)

    def b3(self) -> tuple[float, float, float, float]:
        pairs = self.common.items()
        right_predicted = sum(n * n / len(self.predicted[b]) for (_, b), n in pairs)
        right_gold = sum(n * n / len(self.gold[a]) for (a, _), n in pairs)
        return right_predicted, _size(self.predicted), right_gold, _size(self.gold)

    def ceaf(self) -> tuple[float, float, float, float]:
        alike = np.zeros((len(self.gold), len(self.predicted)))
        for (a, b), n in self.common.items():
            alike[a, b] = 2 * n / (len(self.gold[a]) + len(self.predicted[b]))
        total = float(alike[best_assignment(alike)].sum()) if alike.size else 0.0
        return total, len(self.predicted), total, len(self.gold)


def _size(clusters: Iterable[Collection[Hashable]]) -> int:
    return sum(map(len, clusters))
