"""Vectors of senses: averages over a tagged text, every occurrence in it, and words that explain.

As in the paper (section 5.3), the vectors of all occurrences of a sense are averaged, and the
nearest average tells the sense. Where the occurrences are kept too, the nearest of them can vote.

A word's own vector is as much about the word as about its sense. What the top LSTM puts out before
the residual connection adds the layer below is less so, and what surrounds the word not at all: the
forward language model's state before the word and the backward one's behind it, which have not read
it, are what both expect in its place.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.analysis.senses.tagged_text import TaggedSentence, Target
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.io.atomic import new_file
from elmokit.io.progress import DelayedProgress

Vectors = npt.NDArray[np.float32]

ALONE, AROUND, MIX = -2, -1, None
"""Instead of a layer: the top one without the layer below; what surrounds the word, likewise; or
all layers of the word itself side by side, so that the cosine is the mean of theirs."""

_AT_ONCE = 512  # sentences
_BROKEN = (
    OSError, LookupError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip
"""What reading a file raises that is not whole, or not of this kind."""
_SAME = 1e-4  # cosines less apart are alike: in the token layer only rounding tells senses apart


@dataclass(frozen=True)
class Combination:
    """How hints to a sense are added up.

    Chosen on SemEval-2007, as is common, for the word's own vectors; only what the average counts
    was chosen again, when those around the word came to them.
    """

    k: int = 10
    """So many occurrences vote, those with the nearest surroundings; 0 for none."""
    sharpness: float = 10.0
    """A vote weighs e^(sharpness · cosine)."""
    average: float = 6.0
    """What the cosine to the sense's averages counts, the mean over the top layer's alone and that
    of the surroundings, beside the sense's share of the votes."""
    gloss: float = 1.0
    """What the cosine of the top layer alone to the words counts that explain the sense."""


@dataclass
class SenseVectors:
    """What a tagged text says of senses."""

    keys: list[str]
    vectors: Vectors
    """Averages (K, layers + 2, D), of length 1; last those of the top layer alone and of the
    surroundings."""
    counts: npt.NDArray[np.int64]
    """Occurrences of each sense (K,)."""
    occurrences: npt.NDArray[np.float16] | None = None
    """Their surroundings (Σ counts, D), of length 1, sense by sense, if kept."""
    model: str = ""
    """Checksum of the model that made them."""

    def __post_init__(self) -> None:
        self._row = {key: row for row, key in enumerate(self.keys)}
        self._end = np.cumsum(self.counts)

    @classmethod
    def train(
        cls, elmo: Elmo, sentences: Sequence[TaggedSentence], keep: bool = False
    ) -> SenseVectors:
        """Averages over a tagged text.

        Args:
            elmo: The model.
            sentences: The text.
            keep: Keep the occurrences too.
        """
        rows: dict[str, int] = {}
        owners: list[int] = []
        kept: list[npt.NDArray[np.float16]] = []
        sums = np.zeros((1024, elmo.n_layers + 2, elmo.dim), np.float32)
        for target, vector in target_vectors(elmo, sentences):
            for key in target.keys:
                row = rows.setdefault(key, len(rows))
                if row == len(sums):
                    sums = np.concatenate([sums, np.zeros_like(sums)])
                sums[row] += vector
                owners.append(row)
                if keep:
                    kept.append(unit(vector[AROUND]).astype(np.float16))
        if not rows:
            raise InputError("no word of the text has a sense; give a tagged text")
        order = np.argsort(np.array(owners), kind="stable")
        return cls(
            list(rows),
            unit(unit(sums[: len(rows)]).astype(np.float16).astype(np.float32)),  # as stored
            np.bincount(owners),
            np.stack([kept[i] for i in order]) if keep else None,
            elmo.checkpoint().checksum(),
        )

    def nearest(
        self, vector: Vectors, candidates: Sequence[str], layer: int | None
    ) -> tuple[str, float] | None:
        """The candidate whose average is nearest, and its cosine; None if none was seen.

        Args:
            vector: Of an occurrence (layers + 2, D), as :func:`target_vectors` has them.
            candidates: Sense keys, the first of them taken where several are as near.
            layer: In which layer, or MIX, ALONE or AROUND.
        """
        known, rows = self._known(candidates)
        if not known:
            return None
        chosen = [*range(len(vector) - 2)] if layer is MIX else [layer]
        averages = self.vectors[rows][:, chosen]
        cosines = (averages * unit(vector[chosen])).sum((1, 2)) / averages.shape[1]
        best = _first_of_best(cosines)
        return known[best], float(cosines[best])

    def likeliest(
        self,
        vector: Vectors,
        candidates: Sequence[str],
        glosses: Mapping[str, Vectors],
        how: Combination | None = None,
    ) -> tuple[str, float] | None:
        """The candidate for which most speaks, and its share of votes; None if none was seen.

        Args:
            vector: Of an occurrence (layers + 2, D).
            candidates: Sense keys.
            glosses: Vectors (D,) of what senses mean in words, as :class:`Glosses` has them.
            how: What counts how much.
        """
        how = how or Combination()
        known, rows = self._known(candidates)
        if not known or self.occurrences is None:
            return None
        both = unit(vector[[ALONE, AROUND]])
        top, around = both
        parts = [slice(self._end[row] - self.counts[row], self._end[row]) for row in rows]
        seen = np.concatenate([self.occurrences[part] for part in parts])
        cosines = seen.astype(np.float32) @ around
        owners = np.repeat(np.arange(len(rows)), self.counts[rows])
        nearest = np.argsort(-cosines, kind="stable")[: how.k]
        weights = np.exp(how.sharpness * (cosines[nearest] - 1))
        votes = np.bincount(owners[nearest], weights, len(rows)) / max(weights.sum(), 1e-30)
        averages = (self.vectors[rows][:, [ALONE, AROUND]] * both).sum((1, 2)) / 2
        scores = votes + how.average * averages
        if all(key in glosses for key in known):  # else those without one were worse off
            scores += how.gloss * (np.stack([glosses[key] for key in known]) @ top)
        best = _first_of_best(scores)
        return known[best], float(votes[best])

    def _known(self, candidates: Sequence[str]) -> tuple[list[str], list[int]]:
        """Those of the senses that were seen, and their rows."""
        known = [key for key in candidates if key in self._row]
        return known, [self._row[key] for key in known]

    def check(self, elmo: Elmo) -> None:
        """An error where another model made them."""
        same_shape = self.vectors.shape[1:] == (elmo.n_layers + 2, elmo.dim)
        if self.model != elmo.checkpoint().checksum() or not same_shape:
            raise InputError(
                "the sense vectors were made by another model, or by an earlier version; give that "
                "model with --model, or make new ones with elmokit wsd train"
            )

    def save(self, path: Path) -> None:
        """Write to an npz file, in float16."""
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "keys": np.array(self.keys),
            "vectors": self.vectors.astype(np.float16),
            "counts": self.counts,
            "model": np.array(self.model),
        }
        if self.occurrences is not None:
            arrays["occurrences"] = self.occurrences
        with new_file(path) as new, new.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> SenseVectors:
        """Read what :meth:`save` wrote."""
        try:
            with path.open("rb") as file, np.load(file) as stored:
                kept = stored.get("occurrences")
                vectors = unit(stored["vectors"].astype(np.float32))
                keys, counts = stored["keys"].tolist(), stored["counts"]
                if not len(keys) == len(vectors) == len(counts):
                    raise ValueError("senses, vectors and counts are not equally many")
                if kept is not None and len(kept) != counts.sum():
                    raise ValueError("occurrences are not as many as were counted")
                return cls(keys, vectors, counts, kept, str(stored["model"]))
        except FileNotFoundError as error:
            raise FormatError(f"there is no file {path}; elmokit wsd train makes one") from error
        except _BROKEN as error:
            raise FormatError(
                f"{path} is not a whole file of sense vectors; make it again with elmokit wsd train"
            ) from error


class Glosses:
    """Vectors of what senses mean in words: the mean over the words of WordNet's gloss.

    Args:
        elmo: The model, whose top layer is taken, without the one below.
        wordnet: Where the glosses stand.
    """

    def __init__(self, elmo: Elmo, wordnet: WordNet) -> None:
        self._elmo, self._wordnet = elmo, wordnet

    def of(self, keys: Iterable[str]) -> dict[str, Vectors]:
        """Vectors (D,) of length 1, by key, of all senses that have a gloss."""
        found: dict[str, Vectors] = {}
        asked = list(_explained(self._elmo, self._wordnet, dict.fromkeys(keys)))
        with DelayedProgress("reading glosses", len(asked), "senses") as bar:
            for start in range(0, len(asked), _AT_ONCE):
                some = asked[start : start + _AT_ONCE]
                texts = [lemma + gloss for _, lemma, gloss in some]
                layers = self._elmo.encode(texts, "all", progress=False)
                for (key, lemma, _), array in zip(some, layers, strict=True):
                    words = _top_alone(self._elmo, array)[len(lemma) :]
                    found[key] = unit(unit(words).mean(0))
                bar.advance(len(some))
        return found


def _explained(
    elmo: Elmo, wordnet: WordNet, keys: Iterable[str]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Senses, the tokens of "lemma :", and those of the gloss without its examples."""
    for key in keys:
        meaning = wordnet.gloss(key).partition('"')[0].rstrip("; ")
        if tokens := elmo.tokenize(meaning):
            lemma = key.partition("%")[0].replace("_", " ")
            yield key, [*elmo.tokenize(lemma), ":"], tokens


def target_vectors(
    elmo: Elmo, sentences: Sequence[TaggedSentence]
) -> Iterator[tuple[Target, Vectors]]:
    """Every target with its vectors (layers + 2, D).

    First those of each layer, the mean over its tokens; then likewise the top layer's without the
    layer below; then these on either side of it.
    """
    half = elmo.config.context.projection_dim  # the forward half; all there is of one direction
    with DelayedProgress("reading tagged text", len(sentences), "sentences") as bar:
        for start in range(0, len(sentences), _AT_ONCE):
            some = sentences[start : start + _AT_ONCE]
            read = [_compounds_split(elmo, s.tokens) for s in some]
            layers = elmo.encode([tokens for tokens, _ in read], "all", marks=True, progress=False)
            for sentence, (_, place), array in zip(some, read, layers, strict=True):
                alone = _top_alone(elmo, array)
                every = np.concatenate([array, alone[None]])
                for target in sentence.targets:
                    # the first is the mark
                    before, behind = place[target.start], place[target.end] + 1
                    own = every[:, before + 1 : behind].mean(1)
                    around = np.concatenate([alone[before, :half], alone[behind, half:]])
                    yield target, np.concatenate([own, around[None]])
            bar.advance(len(some))


def _compounds_split(elmo: Elmo, tokens: Sequence[str]) -> tuple[list[str], list[int]]:
    """Tokens (T,) with words such as well-known as the tokenizer of an English model splits them.

    Returns:
        The pieces, and where those of each token begin (T + 1,), last where all end.
    """
    english = elmo.tokenizer.name.startswith("english")
    pieces = [elmo.tokenize(t) if english and "-" in t else [t] for t in tokens]
    return [p for some in pieces for p in some], [0, *np.cumsum([len(p) for p in pieces]).tolist()]


def _top_alone(elmo: Elmo, layers: Vectors) -> Vectors:
    """Of all layers (layers, T, D), what the top one puts out before its input is added (T, D)."""
    context = elmo.config.context
    added = context.kind == "lstm" and context.skip_connections and context.n_layers > 1
    return layers[-1] - layers[-2] if added else layers[-1]


def _first_of_best(scores: npt.NDArray[np.floating]) -> int:
    return int(np.flatnonzero(scores >= scores.max() - _SAME)[0])
