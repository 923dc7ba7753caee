"""Word sense disambiguation with sense vectors from a tagged text.

As in the paper (section 5.3), a word gets the sense with the nearest average vector, or WordNet's
first sense if none of its senses was seen. Further methods use more of the same model and text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from elmokit.analysis.reports.report import Report, Reported, fixed, numbered_layers
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
from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import Displayed, Shown

_LONGEST = 4  # most tokens of a phrase looked up in WordNet


@dataclass(frozen=True)
class WsdScores(Reported):
    """F1 of several methods, in per cent.

    Every word gets an answer, so precision, recall and F1 are equal.
    """

    n: int
    """Words with a gold sense."""
    seen: float
    """Fraction of these words with at least one sense in the training text."""
    first: float
    """WordNet's first sense, the baseline."""
    layers: list[float]
    """Nearest average, by layer."""
    mix: float
    """Nearest average by the mean of the layers' cosine similarities."""
    alone: float
    """Nearest average by the top layer without its residual input."""
    around: float
    """Nearest average by the context on either side of the word."""
    all_hints: float | None
    """Votes, averages and glosses combined; None if the occurrences were not kept."""
    layer_names: list[str] = field(default_factory=list, repr=False)

    def report(self) -> Report:
        """Return the scores as a row, and as dots."""
        from elmokit.analysis.reports.senses_report import wsd_report

        return wsd_report({"": self}, numbered_layers(self.layer_names, len(self.layers)))


def evaluate(
    elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, sentences: Sequence[TaggedSentence]
) -> WsdScores:
    """Score all methods on a text with gold senses."""
    asked = [t for s in sentences for t in s.targets if t.keys]
    if not asked:
        raise InputError("the text has no gold senses; expected at least one")
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
        layer_names=elmo.layer_names,
    )


@dataclass(frozen=True)
class TaggedWord:
    """A word or phrase with its predicted sense."""

    start: int
    """Position of its first token."""
    end: int
    """Position after its last token."""
    key: str
    cosine: float | None
    """Cosine similarity of its context to the sense's average. None if no sense was seen and the
    most frequent one was chosen."""


class TaggedTokens(list[TaggedWord], Displayed):
    """The words of a sentence with their predicted senses.

    Args:
        words: The words and phrases that have senses.
        tokens: All tokens of the sentence.
    """

    def __init__(self, words: Iterable[TaggedWord], tokens: Sequence[str]) -> None:
        super().__init__(words)
        self.tokens = list(tokens)

    def _shown(self) -> Shown:
        rows = [
            [
                " ".join(self.tokens[word.start : word.end]),
                word.key,
                "" if word.cosine is None else fixed(word.cosine),
            ]
            for word in self
        ]
        columns = ["word", "sense", "cosine similarity"]
        return Shown(html_table(Table(rows, columns, " ".join(self.tokens))))


def tag(
    elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, sentences: Sequence[Sequence[str]]
) -> list[TaggedTokens]:
    """Tag all words and phrases that WordNet has, preferring the longest phrases.

    Uses the combined method if the occurrences were kept, and the average contexts otherwise.

    Args:
        elmo: The model.
        vectors: The sense vectors.
        wordnet: The sense inventory; parts of speech are ignored.
        sentences: Tokens of each sentence.
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
        result.append(TaggedTokens(words, sentence.tokens))
    return result


def _look_up(wordnet: WordNet, tokens: Sequence[str]) -> list[Target]:
    """Find the words and phrases of a sentence, with all their possible senses."""
    found: list[Target] = []
    start = 0
    while start < len(tokens):
        for end in range(min(len(tokens), start + _LONGEST), start, -1):
            # the tokenizer may have split a compound such as well-known
            keys = wordnet.of_form(" ".join(tokens[start:end]).replace(" - ", "-"))
            if keys and tokens[start].lower() not in _FUNCTION_WORDS:
                found.append(Target(start, end, "", "", keys=tuple(keys)))
                break
        start = found[-1].end if found and found[-1].start == start else start + 1
    return found


# WordNet lists nouns such as "I" (iodine) and "a" (a vitamin), which these rarely are
_FUNCTION_WORDS = frozenset(
    "a an the i you he she it we they me him her us them my your his its our their this that these "
    "those who whom which what whose as at by for from in into of off on onto out over to up with "
    "and or but if so than then not no nor am is are was were be been being do does did have has "
    "had will would can could may might must shall should".split()
)
