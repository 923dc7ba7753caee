"""Precision, recall and F1 of semantic roles, as in the CoNLL-2005 shared task.

Each predicate has its own arguments: spans of words with a role. A predicted argument is correct if
its words and its role are those of a gold argument of the same predicate. The role V, which is the
predicate itself, does not count. A span with the role C-X continues the last span with the role X:
both are one argument, which is correct only as a whole. Without an X before it, it is an X itself.
The results are those of the official program srl-eval.pl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from elmokit.tasks.measures.paired_values import check_lengths, paired_sentences
from elmokit.tasks.measures.scores import ClassScore, Scores, ratio
from elmokit.tasks.measures.tag_schemes import read_spans

_CONTINUED = "C-"


class Argument(NamedTuple):
    """One or more spans (start, end) of words with a role."""

    role: str
    spans: tuple[tuple[int, int], ...]


def arguments_of(tags: Sequence[str], without: str | None = "V") -> list[Argument]:
    """The arguments of a predicate.

    Args:
        tags: IOB2 tags of all words.
        without: A role to leave out.
    """
    found: list[Argument] = []
    last: dict[str, int] = {}  # the argument that a role's next part would continue
    for start, end, kind in read_spans(tags):
        role = kind.removeprefix(_CONTINUED)
        if role != kind and role in last:
            before = found[last[role]]
            found[last[role]] = Argument(role, (*before.spans, (start, end)))
            continue
        last[role] = len(found)
        found.append(Argument(role, ((start, end),)))
    return [argument for argument in found if argument.role != without]


def role_scores(
    gold: Iterable[Iterable[str]],
    predicted: Iterable[Iterable[str]],
    gold_predicates: Sequence[Collection[int]],
    found_predicates: Sequence[Collection[int]],
) -> Scores:
    """Scores of the arguments of given predicates.

    Args:
        gold: The correct IOB2 tags of each predicate.
        predicted: Its predicted tags, in the same order.
        gold_predicates: Numbers of the words of each sentence that are predicates.
        found_predicates: Those that were predicted, in the same order.

    Returns:
        F1 of all arguments, with precision, recall, the share of predicates whose arguments are
        all correct, F1 of every role, and F1 of the predicates.
    """
    check_lengths(gold_predicates, found_predicates, "sentences")
    pairs = [
        (set(arguments_of(a)), set(arguments_of(b)))
        for a, b in zip(*paired_sentences(gold, predicted), strict=True)
    ]
    n_gold = Counter(argument.role for a, _ in pairs for argument in a)
    n_predicted = Counter(argument.role for _, b in pairs for argument in b)
    n_correct = Counter(argument.role for a, b in pairs for argument in a & b)
    whole = ClassScore.from_counts(n_correct.total(), n_predicted.total(), n_gold.total())
    predicates = _of_predicates(gold_predicates, found_predicates)
    return Scores(
        name="f1",
        value=whole.f1,
        others={
            "precision": whole.precision,
            "recall": whole.recall,
            "perfect predicates": ratio(sum(a == b for a, b in pairs), len(pairs)),
            "predicate f1": predicates.f1,
            "predicate precision": predicates.precision,
            "predicate recall": predicates.recall,
        },
        n=len(pairs),
        unit="predicates",
        per_class={
            role: ClassScore.from_counts(n_correct[role], n_predicted[role], n_gold[role])
            for role in sorted(n_gold | n_predicted)
        },
    )


def _of_predicates(gold: Sequence[Collection[int]], found: Sequence[Collection[int]]) -> ClassScore:
    """Words are counted once: a few of PropBank's have two frames, such as "x" in "x-rays"."""
    pairs = [(set(a), set(b)) for a, b in zip(gold, found, strict=True)]
    correct = sum(len(a & b) for a, b in pairs)
    n_gold, n_found = (sum(len(pair[k]) for pair in pairs) for k in (0, 1))
    return ClassScore.from_counts(correct, n_found, n_gold)
