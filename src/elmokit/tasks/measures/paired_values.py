"""Checks of gold and predicted values: as many of one as of the other, and at least one."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit import arguments
from elmokit.errors import InputError

Numbers = npt.NDArray[np.float64]


def paired_labels(gold: Any, predicted: Any) -> tuple[list[str], list[str]]:
    """Two lists of strings of equal length."""
    found = arguments.strings(gold, "gold"), arguments.strings(predicted, "predicted")
    check_lengths(*found, "labels")
    return found


def paired_sentences(gold: Any, predicted: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Two lists of sentences; the same sentence has as many tags in both."""
    found = _sentences(gold, "gold"), _sentences(predicted, "predicted")
    check_lengths(*found, "sentences")
    for number, (a, b) in enumerate(zip(*found, strict=True), 1):
        if len(a) != len(b):
            raise InputError(
                f"sentence {number} has {len(a):,} tags in gold but {len(b):,} in predicted; "
                "expected as many in both"
            )
    return found


def paired_numbers(gold: Any, predicted: Any) -> tuple[Numbers, Numbers]:
    """Two arrays (N,) of finite numbers."""
    found = arguments.numbers(gold, "gold"), arguments.numbers(predicted, "predicted")
    check_lengths(*found, "numbers")
    return np.array(found[0]), np.array(found[1])


def check_lengths(gold: Sized, predicted: Sized, what: str) -> None:
    """Raise an error unless both have the same length, of at least one."""
    if len(gold) != len(predicted):
        raise InputError(
            f"gold has {len(gold):,} {what} but predicted has {len(predicted):,}; "
            "expected as many in both"
        )
    if not len(gold):
        raise InputError(f"gold and predicted are empty; expected at least one of the {what}")


def _sentences(value: Any, name: str) -> list[list[str]]:
    wanted = "a list of sentences, each a list of tags"
    items = arguments.each(value, name, wanted)
    return [arguments.strings(item, f"each sentence of {name}") for item in items]
