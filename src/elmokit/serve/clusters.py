"""Groups of similar vectors, by k-means: a few lines of numpy, the same result every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.similarity import unit

Floats = npt.NDArray[np.floating[Any]]

_ROUNDS = 50


def cluster(vectors: Floats, k: int) -> list[int]:
    """Return the group (N,) of each vector (N, D), by the cosines to the centres of groups.

    The first centre is the vector nearest to the mean, each further one the vector that is farthest
    from the centres before it. Groups are numbered in the order of their first member.
    """
    units = unit(vectors.astype(np.float64))
    chosen = [int((units @ unit(units.mean(0))).argmax())]
    while len(chosen) < min(k, len(units)):
        chosen.append(int((units @ units[chosen].T).max(1).argmin()))
    centres, groups = units[chosen], np.zeros(len(units), np.int64)
    for _ in range(_ROUNDS):
        before, groups = groups, (units @ centres.T).argmax(1)
        members = [units[groups == g] for g in range(len(centres))]
        centres = unit(
            np.stack([some.mean(0) if len(some) else centres[g] for g, some in enumerate(members)])
        )
        if (before == groups).all():
            break
    number: dict[int, int] = {}
    return [number.setdefault(group, len(number)) for group in groups.tolist()]
