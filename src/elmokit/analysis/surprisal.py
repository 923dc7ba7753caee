"""Surprisal of each word of a sentence, in bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elmokit.analysis.reports.report import Report, Reported
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError
from elmokit.io.notebook import BriefRepr

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Surprisal(BriefRepr, Reported):
    """-log2 p of a sentence's tokens."""

    tokens: list[str]
    known: list[bool]
    """False (T) for tokens outside the vocabulary, which have the surprisal of <UNK>."""
    bits: dict[str, Floats]
    """(T,) by direction: forward, backward and mean; only forward for a forward-only model."""

    def label(self, i: int) -> str:
        """Return a token, with a star appended if it is not in the vocabulary."""
        return self.tokens[i] + ("" if self.known[i] else "*")

    def report(self) -> Report:
        """Return a row for each token, and bars."""
        from elmokit.analysis.reports.surprisal_report import surprisal_report

        return surprisal_report(self)


def surprisal(elmo: Elmo, text: Text) -> Surprisal:
    """Compute the surprisal of each token: forward, backward, and the mean of both.

    Args:
        elmo: A model with a softmax.
        text: A sentence.
    """
    (score,) = elmo.score([text])
    if not score.tokens:
        raise InputError("the sentence has no tokens; expected at least one word")
    bits = {"forward": -score.forward.astype(np.float64) / math.log(2)}
    if score.backward is not None:
        bits["backward"] = -score.backward.astype(np.float64) / math.log(2)
        bits["mean"] = (bits["forward"] + bits["backward"]) / 2
    return Surprisal(score.tokens, score.known.tolist(), bits)
