"""Which sense a word has, by the nearest average of its senses' vectors in a tagged text.

As in the paper (section 5.3): the vectors of all occurrences of a sense are averaged; a word gets
the sense whose average is nearest, and the first sense of WordNet where none was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elmokit.analysis.figures import COLOURS
from elmokit.analysis.report import Report, Value
from elmokit.analysis.senses import TaggedSentence, Target
from elmokit.analysis.similarity import unit
from elmokit.analysis.wordnet import WordNet
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.files import new_file
from elmokit.progress import DelayedProgress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vectors = npt.NDArray[np.float32]

MIX = -1
"""Instead of a layer: all side by side, so that the cosine is the mean of the layers' cosines."""

_AT_ONCE = 2048  # sentences
_LONGEST = 4  # tokens of a phrase looked up in WordNet


@dataclass
class SenseVectors:
    """Average vectors of senses, by layer."""

    keys: list[str]
    vectors: Vectors
    """(K, layers, D), of length 1."""
    model: str = ""
    """Checksum of the model that made them."""

    def __post_init__(self) -> None:
        self._row = {key: row for row, key in enumerate(self.keys)}

    @classmethod
    def train(cls, elmo: Elmo, sentences: Iterable[TaggedSentence]) -> SenseVectors:
        """Averages over a tagged text."""
        rows: dict[str, int] = {}
        sums = np.zeros((1024, elmo.n_layers, elmo.dim), np.float32)
        for target, vector in _occurrences(elmo, sentences):
            for key in target.keys:
                row = rows.setdefault(key, len(rows))
                if row == len(sums):
                    sums = np.concatenate([sums, np.zeros_like(sums)])
                sums[row] += vector
        if not rows:
            raise InputError("no word of the text has a sense; give a tagged text")
        return cls(list(rows), unit(sums[: len(rows)]), elmo.checkpoint().checksum())

    def nearest(
        self, vector: Vectors, candidates: Sequence[str], layer: int
    ) -> tuple[str, float] | None:
        """The candidate nearest to a vector (layers, D), and its cosine; None if none was seen.

        Args:
            vector: Of an occurrence, each layer of length 1.
            candidates: Sense keys.
            layer: In which layer, or MIX.
        """
        known = [key for key in candidates if key in self._row]
        if not known:
            return None
        chosen = slice(None) if layer == MIX else slice(layer, layer + 1)
        senses = self.vectors[[self._row[key] for key in known]][:, chosen]
        cosines = (senses * vector[chosen]).sum((1, 2)) / senses.shape[1]
        best = int(np.argmax(cosines))
        return known[best], float(cosines[best])

    def check(self, elmo: Elmo) -> None:
        """An error where another model made them."""
        if self.model not in ("", elmo.checkpoint().checksum()):
            raise InputError(
                "the sense vectors were made by another model; give that one with --model, or make "
                "new ones with elmokit wsd train"
            )

    def save(self, path: Path) -> None:
        """Write to an npz file, in float16."""
        with new_file(path) as new, new.open("wb") as file:
            np.savez(
                file,
                keys=np.array(self.keys),
                vectors=self.vectors.astype(np.float16),
                model=np.array(self.model),
            )

    @classmethod
    def load(cls, path: Path) -> SenseVectors:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path) as stored:
                vectors = unit(stored["vectors"].astype(np.float32))
                return cls(stored["keys"].tolist(), vectors, str(stored["model"]))
        except (OSError, KeyError, ValueError, EOFError) as error:
            raise FormatError(
                f"{path} holds no sense vectors ({error}); elmokit wsd train makes some"
            ) from error


@dataclass(frozen=True)
class WsdScore:
    """How many senses are right."""

    f1: float
    """In per cent; every word gets an answer, so that precision and recall are the same."""
    n: int
    seen: float
    """Share of words for which a sense had been seen."""


def evaluate(
    elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, sentences: Sequence[TaggedSentence]
) -> tuple[list[WsdScore], WsdScore]:
    """Scores by layer and of the mix, and that of WordNet's first sense alone."""
    choices = [*range(elmo.n_layers), MIX]
    right = np.zeros(len(choices) + 1)
    n = seen = 0
    for target, vector in _occurrences(elmo, sentences):
        if not target.keys:
            continue
        candidates = wordnet.of(target.lemma, target.pos)
        first = candidates[0] if candidates else ""
        n += 1
        right[-1] += first in target.keys
        known = False
        for k, choice in enumerate(choices):
            found = vectors.nearest(vector, candidates, choice)
            known |= found is not None
            right[k] += (found[0] if found else first) in target.keys
        seen += known
    if not n:
        raise InputError("no word of the text has a right sense to compare with")
    scores = [WsdScore(100 * float(r) / n, n, seen / n) for r in right]
    return scores[:-1], scores[-1]


def wsd_report(scores: dict[str, tuple[list[WsdScore], WsdScore]], layers: Sequence[str]) -> Report:
    """F1 of several texts, by layer, beside the first sense.

    Args:
        scores: By text, what :func:`evaluate` gave.
        layers: Their names.
    """
    rows: list[list[Value]] = [
        [name, first.n, 100 * by_layer[0].seen, first.f1, *(score.f1 for score in by_layer)]
        for name, (by_layer, first) in scores.items()
    ]
    columns = ["F1", "words", "% seen", "first sense", *layers, "mix"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = np.arange(len(rows))
        series = list(zip(columns[3:], range(3, len(columns)), strict=True))
        width = 0.8 / len(series)
        for k, (name, column) in enumerate(series):
            heights = [float(row[column] or 0) for row in rows]
            axes.bar(places + k * width, heights, width, color=COLOURS[(k - 1) % 8], label=name)
        lowest = min(float(row[c] or 0) for row in rows for c in range(3, len(columns)))
        axes.set_ylim(max(0, lowest - 5), None)
        axes.set_xticks(places + 0.4 - width / 2, [str(row[0]) for row in rows], rotation=20)
        axes.set_ylabel("F1")
        figure.legend(loc="outside upper center", ncols=3)

    return Report("Word senses, F1", columns, rows, draw=draw, size=(5.0, 3.0), digits=1)


@dataclass(frozen=True)
class TaggedWord:
    """A word or phrase with the sense it was found to have."""

    start: int
    """Its first token…"""
    end: int
    """…and the one behind its last."""
    key: str
    cosine: float | None
    """To the sense's average; None where no sense had been seen and it is the most frequent one."""


def tag(
    elmo: Elmo,
    vectors: SenseVectors,
    wordnet: WordNet,
    sentences: Sequence[Sequence[str]],
    layer: int | None = None,
) -> list[list[TaggedWord]]:
    """Senses of all words and phrases that WordNet has, the longest phrases first.

    Args:
        elmo: The model.
        vectors: Averages of senses.
        wordnet: Which senses there are; of words without regard to their part of speech.
        sentences: Tokens.
        layer: In which layer to look; None for the top.
    """
    chosen = elmo.n_layers - 1 if layer is None else layer
    targets = []
    for tokens in sentences:
        here, start = [], 0
        while start < len(tokens):
            for end in range(min(len(tokens), start + _LONGEST), start, -1):
                keys = wordnet.of_form(" ".join(tokens[start:end]))
                if keys and tokens[start].lower() not in _FUNCTION_WORDS:
                    here.append(Target(start, end, "", "", keys=tuple(keys)))
                    break
            start = here[-1].end if here and here[-1].start == start else start + 1
        targets.append(TaggedSentence(list(tokens), here))
    found = iter(_occurrences(elmo, targets))
    result = []
    for sentence in targets:
        words = []
        for target in sentence.targets:
            _, vector = next(found)
            nearest = vectors.nearest(vector, target.keys, chosen)
            key, cosine = nearest if nearest else (target.keys[0], None)
            words.append(TaggedWord(target.start, target.end, key, cosine))
        result.append(words)
    return result


def _occurrences(
    elmo: Elmo, sentences: Iterable[TaggedSentence]
) -> Iterable[tuple[Target, Vectors]]:
    """Every target with its vector (layers, D), the mean over its tokens, of length 1."""
    remaining = iter(sentences)
    with DelayedProgress("reading tagged text", None, "sentences") as bar:
        while some := list(islice(remaining, _AT_ONCE)):
            layers = elmo.encode([s.tokens for s in some], "all", progress=False)
            for sentence, array in zip(some, layers, strict=True):
                for target in sentence.targets:
                    yield target, unit(array[:, target.start : target.end].mean(1))
            bar.advance(len(some))


# WordNet has nouns such as "I" (iodine) and "a" (a vitamin), which these hardly ever are
_FUNCTION_WORDS = frozenset(
    "a an the i you he she it we they me him her us them my your his its our their this that these "
    "those who whom which what whose as at by for from in into of off on onto out over to up with "
    "and or but if so than then not no nor am is are was were be been being do does did have has "
    "had will would can could may might must shall should".split()
)
