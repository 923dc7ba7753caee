"""The official score of SemEval-2010 task 8, for any labels of relations.

A label is the name of a relation and its direction, as in ``Cause-Effect(e1,e2)`` and
``Cause-Effect(e2,e1)``, or only a name. One negative label, ``Other`` in this task, stands for no
relation. For each relation, both directions together:

- precision = correct / predicted as this relation, in either direction;
- recall = correct / gold of this relation, in either direction;

where correct predictions have the right relation in the right direction. The score is macro F1, the
mean F1 of the relations in the gold labels, without the negative label. A prediction of a relation
that the gold labels do not contain counts like one of the negative label. This is how the official
scorer 1.2 computes its "(9+1)-way evaluation taking directionality into account".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from elmokit.tasks.measures.accuracy import accuracy
from elmokit.tasks.measures.paired_values import paired_labels
from elmokit.tasks.measures.scores import ClassScore, Confusion, Scores, mean

_DIRECTION = re.compile(r"(?<=.)\((?:e1,e2|e2,e1)\)$")


def relation_name(label: str) -> str:
    """A label without its direction."""
    return _DIRECTION.sub("", label)


def relation_scores(
    gold: Iterable[str], predicted: Iterable[str], negative: str | None = "Other"
) -> Scores:
    """Scores of pairs of entities with one relation each.

    Args:
        gold: The correct label of each pair.
        predicted: The predicted label of each pair, in the same order.
        negative: The label that means no relation and is left out of all averages; None if there
            is none.

    Returns:
        Macro F1, with macro precision and recall, micro F1 and accuracy (of all labels, with
        direction). The classes are the relations, and the negative label at the end. The confusion
        matrix has the labels with direction.
    """
    gold, predicted = paired_labels(gold, predicted)
    n_gold = Counter(map(relation_name, gold))
    n_predicted = Counter(map(relation_name, predicted))
    n_correct = Counter(relation_name(a) for a, b in zip(gold, predicted, strict=True) if a == b)

    def of(*names: str) -> ClassScore:
        correct, found, wanted = (
            sum(count[name] for name in names) for count in (n_correct, n_predicted, n_gold)
        )
        return ClassScore.from_counts(correct, found, wanted)

    names = sorted(n_gold | n_predicted, key=lambda name: (name == negative, name))
    per_class = {name: of(name) for name in names}
    averaged = [name for name in names if name in n_gold and name != negative]
    scores = [per_class[name] for name in averaged]
    return Scores(
        name="macro f1",
        value=mean([score.f1 for score in scores]),
        others={
            "macro precision": mean([score.precision for score in scores]),
            "macro recall": mean([score.recall for score in scores]),
            "micro f1": of(*averaged).f1,
            "accuracy": accuracy(gold, predicted),
        },
        n=len(gold),
        unit="pairs",
        per_class=per_class,
        confusion=Confusion.count(gold, predicted, last=negative),
    )
