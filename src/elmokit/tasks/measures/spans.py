"""Precision, recall and F1 of spans, such as named entities.

A predicted span is correct if its start, its end and its type are those of a gold span. The main
measure is micro F1: the correct, predicted and gold spans of all types are added up first. Tags are
read strictly, see :mod:`elmokit.tasks.measures.tag_schemes`. The results are those of seqeval with
``mode="strict"``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from elmokit.tasks.measures.paired_values import check_lengths, paired_sentences
from elmokit.tasks.measures.scores import ClassScore, Confusion, Scores, mean
from elmokit.tasks.measures.tag_schemes import Span, read_spans

NO_TYPE = "_"
"""Name of the empty type, which spans of tags without types have."""
NO_SPAN = "(none)"
"""Label of missing spans in the confusion matrix; O is a type in some data."""


def span_scores(
    gold: Iterable[Iterable[str]], predicted: Iterable[Iterable[str]], scheme: str = "iob2"
) -> Scores:
    """Scores of the spans that tags stand for.

    Args:
        gold: The correct tags of each sentence.
        predicted: The predicted tags of each sentence, in the same order.
        scheme: The scheme of both, one of :data:`~elmokit.tasks.measures.tag_schemes.SCHEMES`.

    Returns:
        As :func:`scores_of_spans`.
    """
    found = paired_sentences(gold, predicted)
    gold_spans, predicted_spans = ([read_spans(tags, scheme) for tags in some] for some in found)
    return scores_of_spans(gold_spans, predicted_spans)


def scores_of_spans(
    gold: Sequence[Collection[Span]], predicted: Sequence[Collection[Span]]
) -> Scores:
    """Scores of spans.

    Args:
        gold: The correct spans of each sentence; those of one sentence may overlap.
        predicted: The predicted spans of each sentence, in the same order.

    Returns:
        Micro F1, with precision, recall, macro F1 and every type. The confusion matrix compares
        the types of spans with the same start and end; "(none)" stands for no span there.
    """
    check_lengths(gold, predicted, "sentences")
    pairs = [(set(a), set(b)) for a, b in zip(gold, predicted, strict=True)]
    n_gold = _count(a for a, _ in pairs)
    n_predicted = _count(b for _, b in pairs)
    n_correct = _count(a & b for a, b in pairs)
    per_class = {
        kind: ClassScore.from_counts(n_correct[kind], n_predicted[kind], n_gold[kind])
        for kind in sorted(n_gold | n_predicted)
    }
    whole = ClassScore.from_counts(n_correct.total(), n_predicted.total(), n_gold.total())
    rows = [row for a, b in pairs for row in _matched(a, b)]
    return Scores(
        name="f1",
        value=whole.f1,
        others={
            "precision": whole.precision,
            "recall": whole.recall,
            "macro f1": mean([score.f1 for score in per_class.values()]),
        },
        n=len(pairs),
        unit="sentences",
        per_class=per_class,
        confusion=Confusion.count([g for g, _ in rows], [p for _, p in rows], last=NO_SPAN),
    )


def _count(sentences: Iterable[Iterable[Span]]) -> Counter[str]:
    """How often each type occurs."""
    return Counter(span.type or NO_TYPE for spans in sentences for span in spans)


def _matched(gold: set[Span], predicted: set[Span]) -> Iterator[tuple[str, str]]:
    """Types of gold and predicted spans with the same start and end; (none) for a missing one."""
    for span in gold & predicted:
        yield span.type or NO_TYPE, span.type or NO_TYPE
    places: dict[tuple[int, int], tuple[list[str], list[str]]] = {}
    for side, spans in enumerate((gold - predicted, predicted - gold)):
        for start, end, kind in sorted(spans):
            places.setdefault((start, end), ([], []))[side].append(kind or NO_TYPE)
    for types in places.values():
        n = max(map(len, types))
        padded = (some + [NO_SPAN] * (n - len(some)) for some in types)
        yield from zip(*padded, strict=True)
