"""Which sense a word has, by what a tagged text says of senses.

As in the paper (section 5.3): a word gets the sense whose average is nearest, and the first sense
of WordNet where none was seen. Beside it stands what more can be had from the same model and text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elmokit.analysis.reports.report import Report, Value
from elmokit.analysis.senses.sense_vectors import (
    ALONE,
    AROUND,
    MIX,
    Glosses,
    SenseVectors,
    target_vectors,
)
from elmokit.analysis.senses.tagged_text import TaggedSentence, Target
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.figures import COLOURS, MARKERS, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 4  # tokens of a phrase looked up in WordNet


@dataclass(frozen=True)
class WsdScores:
    """How many senses are right.

    F1 in per cent: as every word gets an answer, precision and recall are the same.
    """

    n: int
    """Words with a right sense to compare with."""
    seen: float
    """Share of those of which some sense had been seen."""
    first: float
    """F1 of WordNet's first sense."""
    layers: list[float]
    """F1 by the nearest average, one a layer."""
    mix: float
    """Likewise, by the mean of the layers' cosines."""
    alone: float
    """Likewise, by the top layer without what it adds to."""
    around: float
    """Likewise, by the same of what surrounds the word."""
    all_hints: float | None
    """F1 of all hints together; None where the occurrences were not kept."""


def evaluate(
    elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, sentences: Sequence[TaggedSentence]
) -> WsdScores:
    """Scores on a text whose senses are known."""
    asked = [t for s in sentences for t in s.targets if t.keys]
    if not asked:
        raise InputError("no word of the text has a right sense to compare with")
    choices = [*range(elmo.n_layers), MIX, ALONE, AROUND]
    kept = vectors.occurrences is not None
    candidates = (key for t in asked for key in wordnet.of(t.lemma, t.pos)) if kept else ()
    glosses = Glosses(elmo, wordnet).of(candidates)
    right, seen = np.zeros(len(choices) + 2), 0
    for target, vector in target_vectors(elmo, sentences):
        if not target.keys:
            continue
        keys = wordnet.of(target.lemma, target.pos)
        found = [vectors.nearest(vector, keys, choice) for choice in choices]
        found.append(vectors.likeliest(vector, keys, glosses))
        first = keys[0] if keys else ""
        answers = [first if one is None else one[0] for one in found]
        right += [answer in target.keys for answer in [*answers, first]]
        seen += found[0] is not None
    scores = (100 * right / len(asked)).tolist()
    *by_layer, mix, alone, around, all_hints, first_sense = scores
    return WsdScores(
        n=len(asked),
        seen=seen / len(asked),
        first=first_sense,
        layers=by_layer,
        mix=mix,
        alone=alone,
        around=around,
        all_hints=all_hints if kept else None,
    )


def wsd_report(scores: dict[str, WsdScores], layers: Sequence[str]) -> Report:
    """F1 on several texts, by layer, beside the first sense.

    Args:
        scores: By text.
        layers: Their names.
    """
    methods = ["first sense", *layers, "mix", "top alone", "around it"]
    kept = all(score.all_hints is not None for score in scores.values())
    if kept:
        methods.append("all hints")
    rows: list[list[Value]] = []
    for name, score in scores.items():
        single = [score.first, *score.layers, score.mix, score.alone, score.around]
        values = [*single, score.all_hints][: len(methods)]
        rows.append([name, score.n, 100 * score.seen, *values])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = np.arange(len(rows))
        for k, method in enumerate(methods):
            axes.plot(
                [float(row[3 + k] or 0) for row in rows],
                places,
                linestyle="",
                marker=MARKERS[(k + k // len(MARKERS)) % len(MARKERS)],
                color=COLOURS[(k - 1) % len(COLOURS)],
                label=method,
            )
        axes.set_yticks(places, [short(str(row[0]), 24) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="x", linewidth=0.4)
        axes.set_xlabel("F1, per cent")
        figure.legend(loc="outside upper center", ncols=3)

    columns = ["F1", "words", "seen", *methods]
    size = (3.4, 1.3 + 0.25 * len(rows))
    return Report(
        "Word senses: F1, and words seen, in per cent",
        columns,
        rows,
        draw=draw,
        size=size,
        digits=1,
    )


@dataclass(frozen=True)
class TaggedWord:
    """A word or phrase with the sense it was found to have."""

    start: int
    """Its first token…"""
    end: int
    """…and the one behind its last."""
    key: str
    cosine: float | None
    """Of what surrounds it to the sense's average; None where no sense had been seen and it is the
    most frequent one."""


def tag(
    elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, sentences: Sequence[Sequence[str]]
) -> list[list[TaggedWord]]:
    """Senses of all words and phrases that WordNet has, the longest phrases first.

    By all hints together where the occurrences were kept, else by the averages of surroundings.

    Args:
        elmo: The model.
        vectors: What is known of senses.
        wordnet: Which senses there are; of words without regard to their part of speech.
        sentences: Tokens.
    """
    targets = [TaggedSentence(list(tokens), _look_up(wordnet, tokens)) for tokens in sentences]
    kept = vectors.occurrences is not None
    candidates = (key for s in targets for t in s.targets for key in t.keys) if kept else ()
    glosses = Glosses(elmo, wordnet).of(candidates)
    found = iter(target_vectors(elmo, targets))
    result = []
    for sentence in targets:
        words = []
        for target in sentence.targets:
            _, vector = next(found)
            chosen = vectors.likeliest(vector, target.keys, glosses) if kept else None
            keys = target.keys if chosen is None else [chosen[0]]
            nearest = vectors.nearest(vector, keys, AROUND)
            key, cosine = nearest or (target.keys[0], None)
            words.append(TaggedWord(target.start, target.end, key, cosine))
        result.append(words)
    return result


def _look_up(wordnet: WordNet, tokens: Sequence[str]) -> list[Target]:
    """Words and phrases of a sentence with all senses they can have."""
    found: list[Target] = []
    start = 0
    while start < len(tokens):
        for end in range(min(len(tokens), start + _LONGEST), start, -1):
            # a model's tokenizer may have split well-known
            keys = wordnet.of_form(" ".join(tokens[start:end]).replace(" - ", "-"))
            if keys and tokens[start].lower() not in _FUNCTION_WORDS:
                found.append(Target(start, end, "", "", keys=tuple(keys)))
                break
        start = found[-1].end if found and found[-1].start == start else start + 1
    return found


# WordNet has nouns such as "I" (iodine) and "a" (a vitamin), which these hardly ever are
_FUNCTION_WORDS = frozenset(
    "a an the i you he she it we they me him her us them my your his its our their this that these "
    "those who whom which what whose as at by for from in into of off on onto out over to up with "
    "and or but if so than then not no nor am is are was were be been being do does did have has "
    "had will would can could may might must shall should".split()
)
