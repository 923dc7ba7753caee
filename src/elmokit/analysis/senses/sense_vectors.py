"""Sense vectors: averages over a tagged text, its occurrences, and glosses.

As in the paper (section 5.3), the vectors of all occurrences of a sense are averaged, and a word
gets the sense with the nearest average. If the occurrences are kept too, the nearest can vote.

A word's own vector says as much about the word as about its sense. The top LSTM's output before the
residual connection adds its input says less about the word. The context says nothing about it: the
forward state before the word and the backward state after it have not read the word, and represent
what each direction expects in its place.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.senses.tagged_text import TaggedSentence, Target
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.io.atomic import new_file
from elmokit.io.html_table import facts, html_table
from elmokit.io.notebook import BriefRepr, Displayed, Shown
from elmokit.io.progress import DelayedProgress

Vectors = npt.NDArray[np.float32]

ALONE, AROUND, MIX = -2, -1, None
"""Choices other than a layer: the top layer without its residual input; the context on either side
of the word, also without it; or the mean of the cosine similarities of all layers."""

_BROKEN = (
    OSError, LookupError, ValueError, EOFError, TypeError, AttributeError, RuntimeError,
    ArithmeticError, MemoryError, SyntaxError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Exceptions raised by reading a file that is incomplete or of another kind."""
_ARRAYS = ("keys", "vectors", "counts", "model", "occurrences")
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_SAME = 1e-4  # a tie: senses in the token layer differ only by rounding


@dataclass(frozen=True)
class Combination:
    """Weights of the combined method.

    Tuned on SemEval-2007, as is common, for the word's own vectors. Only ``average`` was tuned
    again when the context vectors were added.
    """

    k: int = 10
    """Number of occurrences that vote, those with the nearest contexts; 0 for no votes."""
    sharpness: float = 10.0
    """A vote has the weight e^(sharpness · cosine)."""
    average: float = 6.0
    """Weight of the cosine similarity to the sense's averages (the mean of top layer without
    residual and context), relative to the sense's share of the votes."""
    gloss: float = 1.0
    """Weight of the cosine similarity of the top layer without residual to the sense's gloss."""


@dataclass(repr=False)
class SenseVectors(BriefRepr, Displayed):
    """Vectors of the senses in a tagged text."""

    keys: list[str]
    vectors: Vectors
    """Average unit vectors (K, layers + 2, D); the last two are those of the top layer without
    residual and of the context."""
    counts: npt.NDArray[np.int64]
    """Occurrences of each sense (K,)."""
    occurrences: npt.NDArray[np.float16] | None = None
    """Unit vectors of their contexts (Σ counts, D), sense by sense, if kept."""
    model: str = ""
    """Checksum of the model."""

    def __post_init__(self) -> None:
        self._row = {key: row for row, key in enumerate(self.keys)}
        self._end = np.cumsum(self.counts)

    def _shown(self) -> Shown:
        values = {
            "senses": len(self.keys),
            "occurrences": int(self.counts.sum()),
            "occurrences kept": "no" if self.occurrences is None else "yes",
            "layers": self.vectors.shape[1] - 2,
            "vector width": self.vectors.shape[2],
        }
        return Shown(html_table(facts("Sense vectors", values)))

    @classmethod
    def train(
        cls, elmo: Elmo, sentences: Sequence[TaggedSentence], keep: bool = False
    ) -> SenseVectors:
        """Average the vectors of every sense in a tagged text.

        Args:
            elmo: The model.
            sentences: The text.
            keep: Whether to keep the occurrences too.
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
            raise InputError("the text has no tagged words; expected a sense-tagged text")
        order = np.argsort(np.array(owners), kind="stable")
        # rounded as in the file
        averages = unit(unit(sums[: len(rows)]).astype(np.float16).astype(np.float32))
        return cls(
            list(rows),
            averages,
            np.bincount(owners),
            np.stack([kept[i] for i in order]) if keep else None,
            elmo.checkpoint().checksum(),
        )

    def nearest(
        self, vector: Vectors, candidates: Sequence[str], layer: int | None
    ) -> tuple[str, float] | None:
        """Return the candidate with the nearest average and its cosine; None if none was seen.

        Args:
            vector: Vectors of an occurrence (layers + 2, D), from :func:`target_vectors`.
            candidates: Sense keys; the first one wins a tie.
            layer: The number of a layer, or MIX, ALONE or AROUND.
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
        """Return the best candidate by the combined method and its share of votes.

        Args:
            vector: Vectors of an occurrence (layers + 2, D).
            candidates: Sense keys.
            glosses: Gloss vectors (D,) by sense key, from :class:`Glosses`.
            how: Weights of the combination.

        Returns:
            None if no candidate was seen, or the occurrences were not kept.
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
        if all(key in glosses for key in known):  # otherwise senses without a gloss would lose
            scores += how.gloss * (np.stack([glosses[key] for key in known]) @ top)
        best = _first_of_best(scores)
        return known[best], float(votes[best])

    def _known(self, candidates: Sequence[str]) -> tuple[list[str], list[int]]:
        """The candidates that were seen, and their rows."""
        known = [key for key in candidates if key in self._row]
        return known, [self._row[key] for key in known]

    def check(self, elmo: Elmo) -> None:
        """Raise an error if another model computed the vectors."""
        same_shape = self.vectors.shape[1:] == (elmo.n_layers + 2, elmo.dim)
        if self.model != elmo.checkpoint().checksum() or not same_shape:
            raise InputError(
                "the sense vectors come from another model or an earlier version; load that "
                "model, or compute new ones with elmokit wsd train"
            )

    def save(self, path: Path) -> None:
        """Write an npz file, in float16."""
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
        """Read a file written by :meth:`save`."""
        if not path.exists():
            raise FormatError(f"there is no file {path}; elmokit wsd train writes one")
        try:
            return cls._from_arrays(_read_arrays(path))
        except _BROKEN as error:
            raise FormatError(
                f"{path} is not a complete file of sense vectors; write it with elmokit wsd train"
            ) from error

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SenseVectors:
        """Check stored arrays now; otherwise their use would fail later."""
        keys, counts, vectors = arrays["keys"], arrays["counts"], arrays["vectors"]
        kept, model = arrays.get("occurrences"), arrays["model"]
        kinds = [a.dtype.kind for a in (keys, model, counts, vectors)]
        if kinds != ["U", "U", "i", "f"] or (keys.ndim, counts.ndim, vectors.ndim) != (1, 1, 3):
            raise ValueError("an array has another type or shape")
        if not 0 < len(keys) == len(vectors) == len(counts):
            raise ValueError("senses, vectors and counts differ in number")
        n_occurrences = sum(counts.tolist())  # of any size
        if counts.min() < 1 or n_occurrences >= 1 << 62:
            raise ValueError("a count is not positive")
        if not np.isfinite(vectors).all():
            raise ValueError("the vectors are not finite")
        if kept is not None and (
            kept.dtype.kind != "f"
            or kept.shape != (n_occurrences, vectors.shape[2])
            or not np.isfinite(kept).all()
        ):
            raise ValueError("occurrences do not match the counts")
        averages = unit(vectors.astype(np.float32))
        return cls(keys.tolist(), averages, counts, kept, str(model))


def _read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read an npz file. Sizes are compared with the file before anything is allocated."""
    if not path.is_file():
        raise ValueError("not a file")
    size, found = path.stat().st_size, {}
    with zipfile.ZipFile(path) as stored:
        for entry in stored.infolist():
            name = entry.filename.removesuffix(".npy")
            if name not in _ARRAYS or name in found or entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError("another array")
            if entry.file_size > size:
                raise ValueError("an array is larger than the file")
            with stored.open(entry) as file:
                version = np.lib.format.read_magic(file)
                if version not in _HEADERS:
                    raise ValueError("another version of the format")
                shape, order, dtype = _HEADERS[version](file)
                n_bytes = math.prod(shape) * dtype.itemsize
                if order or dtype.hasobject or n_bytes != entry.file_size - file.tell():
                    raise ValueError("another size or type")
                raw = file.read(n_bytes)  # checks the CRC at the end
                if len(raw) != n_bytes:
                    raise ValueError("the file ends too early")
                found[name] = np.frombuffer(raw, dtype).reshape(shape)
    return found


class Glosses:
    """Vectors of WordNet's glosses: the mean over the words of each gloss.

    Args:
        elmo: The model; its top layer is used, without the residual input.
        wordnet: The glosses.
    """

    def __init__(self, elmo: Elmo, wordnet: WordNet) -> None:
        self._elmo, self._wordnet = elmo, wordnet

    def of(self, keys: Iterable[str]) -> dict[str, Vectors]:
        """Compute unit vectors (D,) by key, for all senses that have a gloss."""
        found: dict[str, Vectors] = {}
        asked = list(_explained(self._elmo, self._wordnet, dict.fromkeys(keys)))
        texts = (lemma + gloss for _, lemma, gloss in asked)
        with DelayedProgress("reading glosses", len(asked), "senses") as bar:
            layers = self._elmo.stream(texts, "all")
            for (key, lemma, _), array in zip(asked, layers, strict=True):
                words = _top_without_residual(self._elmo, array)[len(lemma) :]
                found[key] = unit(unit(words).mean(0))
                bar.advance(1)
        return found


def _explained(
    elmo: Elmo, wordnet: WordNet, keys: Iterable[str]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield senses with the tokens of "lemma :" and of the gloss, without its examples."""
    for key in keys:
        meaning = wordnet.gloss(key).partition('"')[0].rstrip("; ")
        if tokens := elmo.tokenize(meaning):
            lemma = key.partition("%")[0].replace("_", " ")
            yield key, [*elmo.tokenize(lemma), ":"], tokens


def target_vectors(
    elmo: Elmo, sentences: Sequence[TaggedSentence]
) -> Iterator[tuple[Target, Vectors]]:
    """Yield every target with its vectors (layers + 2, D).

    The first rows are the layers, each the mean over the target's tokens. Then comes the top layer
    without its residual input, and last the context: the same on either side of the target.
    """
    half = elmo.config.context.projection_dim  # the forward half, or all of a forward-only model
    read = [_compounds_split(elmo, s.tokens) for s in sentences]
    layers = elmo.stream((tokens for tokens, _ in read), "all", marks=True)
    with DelayedProgress("reading tagged text", len(sentences), "sentences") as bar:
        for sentence, (_, place), array in zip(sentences, read, layers, strict=True):
            alone = _top_without_residual(elmo, array)
            every = np.concatenate([array, alone[None]])
            for target in sentence.targets:
                # position 0 is the sentence mark
                before, behind = place[target.start], place[target.end] + 1
                own = every[:, before + 1 : behind].mean(1)
                around = np.concatenate([alone[before, :half], alone[behind, half:]])
                yield target, np.concatenate([own, around[None]])
            bar.advance(1)


def _compounds_split(elmo: Elmo, tokens: Sequence[str]) -> tuple[list[str], list[int]]:
    """Split compounds such as well-known in tokens (T,) as an English model's tokenizer does.

    Returns:
        The pieces, and where those of each token start (T + 1,), with the end last.
    """
    english = elmo.tokenizer.name.startswith("english")
    pieces = [elmo.tokenize(t) if english and "-" in t else [t] for t in tokens]
    return [p for some in pieces for p in some], [0, *np.cumsum([len(p) for p in pieces]).tolist()]


def _top_without_residual(elmo: Elmo, layers: Vectors) -> Vectors:
    """The top layer's own output (T, D), without its input, from all layers (layers, T, D)."""
    return layers[-1] - layers[-2] if elmo.config.context.adds_input else layers[-1]


def _first_of_best(scores: npt.NDArray[np.floating]) -> int:
    return int(np.flatnonzero(scores >= scores.max() - _SAME)[0])
