"""Exact match and F1 of answers, by the definition of SQuAD 1.1 (Rajpurkar et al. 2016).

Answers are compared in lower case, without punctuation and without the articles a, an and the.
Exact match is the share of answers that then equal a gold answer. F1 is that of the words that an
answer and a gold answer share. If a question has several gold answers, the best result counts.

Chinese is written without spaces: each Chinese character is a word, and Chinese punctuation is
punctuation too. For other text the results are those of the official script.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from elmokit.tasks.measures.paired_values import check_lengths
from elmokit.tasks.measures.scores import Scores, mean

_PUNCTUATION = str.maketrans(
    "", "", string.punctuation + "，。！？；：、（）《》〈〉「」『』【】〔〕"
)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CHINESE = re.compile("([\u3400-\u4dbf\u4e00-\u9fff])")


def answer_scores(gold: Sequence[Sequence[str]], predicted: Sequence[str]) -> Scores:
    """Scores of answers.

    Args:
        gold: The right answers to each question, at least one.
        predicted: The predicted answer to each question, in the same order.

    Returns:
        F1, with exact match.
    """
    check_lengths(gold, predicted, "questions")
    return Scores(
        name="f1",
        value=100 * _mean_of_best(shared_words, gold, predicted),
        others={"exact match": 100 * _mean_of_best(exact_match, gold, predicted)},
        n=len(gold),
        unit="questions",
    )


def normalised(answer: str) -> str:
    """An answer as it is compared: lower case, no punctuation, no articles, single spaces."""
    plain = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def exact_match(predicted: str, gold: str) -> float:
    """1.0 if two answers are equal after normalisation, else 0.0."""
    return float(normalised(predicted) == normalised(gold))


def shared_words(predicted: str, gold: str) -> float:
    """F1 (0 to 1) of the words of two answers; a word counts as often as it occurs."""
    a, b = (_CHINESE.sub(r" \1 ", normalised(text)).split() for text in (predicted, gold))
    shared = (Counter(a) & Counter(b)).total()
    return 2 * shared / (len(a) + len(b)) if shared else 0.0


def _mean_of_best(
    measure: Callable[[str, str], float], gold: Sequence[Sequence[str]], predicted: Sequence[str]
) -> float:
    pairs = zip(gold, predicted, strict=True)
    return mean([max(measure(answer, right) for right in all_right) for all_right, answer in pairs])
