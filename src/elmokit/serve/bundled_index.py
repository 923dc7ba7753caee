"""The small index in the package: ambiguous words in sentences of old books, for the bundled model.

Unlike an index of ``elmokit index``, it has vectors of chosen tokens only, each rounded to int8
with a scale. It fits one version of the model ``en``, which it knows by its checksum.
``python recipes/neighbours.py`` builds it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from elmokit.analysis.index.index_config import PROBE, VERSION, IndexConfig
from elmokit.analysis.index.token_index import Index, nearest
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo
from elmokit.errors import FormatError
from elmokit.io.atomic import new_file

PLACE = Path(__file__).parent / "neighbours.npz"
"""The file in the package."""

_REBUILD = "rebuild it with python recipes/neighbours.py, or give another index"
_BROKEN = (OSError, ValueError, LookupError, TypeError, EOFError, BadZipFile, zlib.error)
_MOST_WORDS = 6000  # with static vectors; the most frequent of the sentences


class BundledIndex(Index):
    """Vectors of chosen tokens of a text. Open the one in the package with :meth:`open`.

    Args:
        path: The file.
        arrays: What is in it.
        elmo: The model, which computes the static vectors of words when they are asked for.
    """

    def __init__(self, path: Path, arrays: dict[str, Any], elmo: Elmo) -> None:
        self.folder = path
        self.config = IndexConfig(**json.loads(str(arrays["config"])))
        self.vectors = unit(arrays["vectors"] * arrays["scales"][:, None]).astype(np.float16)
        self.probe = arrays["probe"]
        self._elmo = elmo
        self._sentence, self._position = arrays["sentence"], arrays["position"]
        self._texts = str(arrays["texts"]).split("\n")
        self._number = {text: i for i, text in enumerate(self._texts)}

    @classmethod
    def open(cls, elmo: Elmo, path: Path = PLACE) -> BundledIndex:  # type: ignore[override]
        """Open the index in the package.

        Args:
            elmo: The bundled model ``en``.
            path: Another place.

        Raises:
            FormatError: There is none, or it was built with another version of the model.
        """
        if not path.is_file():
            raise FormatError(f"the index {path.name} is not in the package; {_REBUILD}")
        try:
            found = cls(path, _read(path), elmo)
        except _BROKEN as error:
            raise FormatError(f"the index {path.name} is damaged; {_REBUILD}") from error
        if found.config.weights != elmo.checkpoint().checksum():
            raise FormatError(
                f"the index {path.name} was built with another version of the model; {_REBUILD}"
            )
        return found

    @cached_property
    def words(self) -> list[str]:
        """The most frequent words of the sentences."""
        counts: dict[str, int] = {}
        for text in self._texts:
            for word in text.split(" "):
                counts[word] = counts.get(word, 0) + 1
        alphabetic = [word for word in counts if word.isalpha() and word.islower()]
        return sorted(alphabetic, key=lambda word: (-counts[word], word))[:_MOST_WORDS]

    @cached_property
    def _word_vectors(self) -> npt.NDArray[np.float16]:  # type: ignore[override]
        (vectors,) = self._elmo.encode([self.words], 0, progress=False)
        return unit(vectors[:, : self.config.word_dim]).astype(np.float16)

    def sentence(self, number: int) -> list[str]:
        """The tokens of a sentence."""
        return self._texts[number].split(" ")

    def place(self, row: int) -> tuple[int, int]:
        """Return the number of a token's sentence, and the token's position in it."""
        return int(self._sentence[row]), int(self._position[row])

    def search(
        self,
        vector: npt.NDArray[np.float32],
        k: int,
        *,
        exclude: Sequence[str] = (),
        word: str | None = None,
        brute: bool = False,
    ) -> list[tuple[int, float]]:
        """Find the k tokens nearest to a unit vector (D,), as :meth:`Index.search` does.

        All of them are compared, whatever ``brute`` says: they are few.
        """
        rows = np.arange(len(self.vectors))
        own = self._number.get(" ".join(exclude), -1)
        rows = rows[self._sentence != own]
        if word is not None:
            same = [self.sentence(s)[p].casefold() for s, p in map(self.place, rows.tolist())]
            rows = rows[np.array(same) == word.casefold()]
        return nearest(self.vectors, vector, k, rows)


def _read(path: Path) -> dict[str, Any]:
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def stored_sentences(path: Path = PLACE) -> list[str]:
    """Return the sentences of an index, with spaces between their tokens."""
    try:
        return str(_read(path)["texts"]).split("\n")
    except _BROKEN as error:
        raise FormatError(f"{path} is missing or damaged; build it from a text") from error


def write_bundled(
    elmo: Elmo, chosen: Sequence[tuple[list[str], Sequence[int]]], path: Path = PLACE
) -> IndexConfig:
    """Write an index of chosen tokens.

    Args:
        elmo: The model; its top layer is used.
        chosen: The tokens of each sentence, and the positions to index.
        path: The file.
    """
    layer = elmo.n_layers - 1
    rows: list[npt.NDArray[np.float32]] = []
    places: list[tuple[int, int]] = []
    sentences = [tokens for tokens, _ in chosen]
    for i, array in enumerate(elmo.stream(sentences, layer)):
        rows += [array[p] for p in chosen[i][1]]
        places += [(i, p) for p in chosen[i][1]]
    vectors = unit(np.stack(rows))
    scales = np.abs(vectors).max(1) / 127
    (probe,) = elmo.encode([PROBE], layer)
    config = IndexConfig(
        version=VERSION,
        model="en",
        weights=elmo.checkpoint().checksum(),
        parameters=elmo.n_parameters,
        layer=layer,
        dim=elmo.dim,
        word_dim=elmo.config.context.projection_dim,
        tokenizer=elmo.tokenizer.name,
        most_per_word=0,
        sentences=len(sentences),
        tokens=sum(map(len, sentences)),
        words=len({word for tokens in sentences for word in tokens}),
        rows=len(rows),
        sizes={},
    )
    arrays: dict[str, npt.NDArray[Any]] = {
        "config": np.array(json.dumps(asdict(config))),
        "vectors": np.round(vectors / scales[:, None]).astype(np.int8),
        "scales": scales.astype(np.float32),
        "sentence": np.array([s for s, _ in places], np.int32),
        "position": np.array([p for _, p in places], np.int32),
        "texts": np.array("\n".join(" ".join(tokens) for tokens in sentences)),
        "probe": unit(probe).astype(np.float16),
    }
    with new_file(path) as new, new.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return config
