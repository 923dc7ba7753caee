"""Accuracy and macro F1, for labels of texts and for tags of tokens.

Accuracy is the share of correct labels. Macro F1 is the mean of the classes' F1, over all classes
that occur in the gold or the predicted labels; a class counts the same whether it is rare or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from elmokit.errors import InputError
from elmokit.tasks.measures.paired_values import paired_labels, paired_sentences
from elmokit.tasks.measures.scores import Confusion, Scores, mean, ratio


def label_scores(gold: Iterable[str], predicted: Iterable[str], unit: str = "texts") -> Scores:
    """Scores of texts, or of pairs of them, with one label each.

    Args:
        gold: The correct label of each text.
        predicted: The predicted label of each text, in the same order.
        unit: What has a label.

    Returns:
        Accuracy, with macro F1, every class and the confusion matrix.
    """
    return _scores(*paired_labels(gold, predicted), unit)


def tag_scores(gold: Iterable[Iterable[str]], predicted: Iterable[Iterable[str]]) -> Scores:
    """Scores of tokens with one tag each, such as parts of speech.

    Args:
        gold: The correct tags of each sentence.
        predicted: The predicted tags of each sentence, in the same order.

    Returns:
        Accuracy over all tokens, with macro F1, every tag and the confusion matrix.
    """
    sentences = paired_sentences(gold, predicted)
    tokens = [list(chain.from_iterable(some)) for some in sentences]
    if not tokens[0]:
        raise InputError("the sentences are empty; expected at least one tag")
    return _scores(tokens[0], tokens[1], "tokens")


def accuracy(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of equal pairs in per cent; 0.0 of none."""
    return ratio(sum(g == p for g, p in zip(gold, predicted, strict=True)), len(gold))


def _scores(gold: Sequence[str], predicted: Sequence[str], unit: str) -> Scores:
    confusion = Confusion.count(gold, predicted)
    per_class = confusion.per_class()
    return Scores(
        name="accuracy",
        value=accuracy(gold, predicted),
        others={"macro f1": mean([score.f1 for score in per_class.values()])},
        n=len(gold),
        unit=unit,
        per_class=per_class,
        confusion=confusion,
    )
