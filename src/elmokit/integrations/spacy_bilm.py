"""The frozen biLM of a thinc model: loaded when it is first used, saved as a checksum."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from elmokit.elmo import Elmo
from elmokit.errors import FormatError, MissingExtraError, ModelNotFoundError
from elmokit.formats import bundled_name, native, read_model
from elmokit.formats.checkpoint import MODEL_FILES, Checkpoint
from elmokit.inference.arrays import Array
from elmokit.inference.layers import Layers

if TYPE_CHECKING:
    from spacy.tokens import Doc

try:
    import srsly
    from spacy.pipeline import Sentencizer
    from thinc.api import Ops, Shim
except ImportError as error:
    raise MissingExtraError("spacy", "spacy", "the component elmo of spaCy") from error

_SENTENCE_ENDS = frozenset(Sentencizer.default_punct_chars)


class FrozenBiLM(Shim):
    """The biLM of a thinc model.

    Its bytes have the checksum of the weights, and the weights themselves only on request. The
    softmax is never used and never stored.

    Args:
        name: A folder, a ZIP archive, or the name of a bundled model.
        store: Whether :meth:`to_bytes` contains the weights. Those of a bundled model never are.
        cache_mb: Memory for the layers of training sentences; see :meth:`arrays`.
    """

    def __init__(self, name: str, store: bool, cache_mb: int) -> None:
        super().__init__(None)
        self.name, self.store, self.cache_mb = name, store, cache_mb
        self._elmo: Elmo | None = None
        self._checksum: str | None = None
        self._files: dict[str, bytes] | None = None
        self._cache: dict[tuple[str, ...], Array] = {}
        self._caching, self._free = False, cache_mb << 20
        self._process = os.getpid()

    @property
    def elmo(self) -> Elmo:
        """The model, which is loaded by the first use."""
        if os.getpid() != self._process:
            # Forked, as nlp.pipe does with n_process. OpenMP's threads did not survive that, and
            # several processes are faster with one thread each.
            torch.set_num_threads(1)
            self._process = os.getpid()
        if self._elmo is None:
            checkpoint = self._read().without_softmax()
            found = checkpoint.checksum()
            if self._checksum not in (None, found):
                raise FormatError(
                    f"this pipeline was made with another biLM than {self.name} is now (SHA-256 "
                    f"{self._checksum}, not {found}); give the original as the setting model"
                )
            self._elmo, self._checksum, self._files = Elmo(checkpoint, device="cpu"), found, None
        return self._elmo

    def arrays(
        self, docs: Sequence[Doc], layers: Layers, ops: Ops, training: bool
    ) -> Iterator[list[tuple[list[int], Array]]]:
        """For each document: the positions of the words of each sentence, and their array.

        The first call in training starts a cache of sentences, because training reads them in every
        epoch, and evaluates in between. It is filled up to its limit and not emptied.

        Args:
            docs: Documents.
            layers: As for :meth:`elmokit.Elmo.encode`; the same in every call.
            ops: Where thinc computes. On a GPU, the biLM runs there too.
            training: Whether this is a step of training.
        """
        elmo = self.elmo.to("cuda" if ops.device_type == "gpu" else "cpu")
        self._caching |= training
        places = [sentences(doc) for doc in docs]
        words = [
            tuple(doc[i].text for i in place)
            for doc, own in zip(docs, places, strict=True)
            for place in own
        ]
        cached = [self._cache.get(tokens) for tokens in words]
        missing = (list(t) for t, array in zip(words, cached, strict=True) if array is None)
        encoded, each = elmo.stream(missing, layers), zip(words, cached, strict=True)
        for own in places:
            yield [
                (place, self._keep(tokens, next(encoded)) if array is None else array)
                for place, (tokens, array) in zip(own, each)  # noqa: B905  # of more documents
            ]

    def _keep(self, tokens: tuple[str, ...], array: Array) -> Array:
        """The array of a sentence, which is cached if it fits."""
        size = array.nbytes
        if self._caching and size <= self._free and tokens not in self._cache:
            self._cache[tokens] = array
            self._free -= size
        return array

    def _read(self) -> Checkpoint:
        if self._files is None:
            try:
                return read_model(self.name)
            except ModelNotFoundError as error:
                raise ModelNotFoundError(
                    f"{error}; a pipeline keeps the path of its biLM unless it was saved with "
                    "store = true: put the biLM there, or override the setting model"
                ) from error
        with tempfile.TemporaryDirectory() as folder:
            for name in MODEL_FILES & set(self._files):
                Path(folder, name).write_bytes(self._files[name])
            return read_model(folder)

    def to_bytes(self) -> bytes:
        """The checksum of the biLM; with ``store``, also its files."""
        if self._checksum is None:
            self.elmo  # noqa: B018  # loading computes the checksum
        files = self._files if self.store else None
        if self.store and files is None and not self._is_bundled():
            checkpoint = replace(self.elmo.checkpoint(), vocabulary=None)
            with tempfile.TemporaryDirectory() as folder:
                native.write(checkpoint, Path(folder, "bilm"))
                files = {path.name: path.read_bytes() for path in Path(folder, "bilm").iterdir()}
        values = {"sha256": self._checksum, "files": files}
        packed: bytes = srsly.msgpack_dumps(values)
        return packed

    def _is_bundled(self) -> bool:
        return bundled_name(self.elmo.source) is not None

    def from_bytes(self, data: bytes) -> FrozenBiLM:
        """Take over a saved checksum. The biLM is loaded later, by the first use."""
        values = srsly.msgpack_loads(data)
        if values["sha256"] != self._checksum:
            self._elmo, self._cache, self._free = None, {}, self.cache_mb << 20
        self._checksum = values["sha256"]
        self._files = values["files"] if self._elmo is None else None
        return self

    def copy(self) -> FrozenBiLM:
        """Another one with the same biLM in memory, which nobody changes."""
        other = FrozenBiLM(self.name, self.store, self.cache_mb)
        other._elmo, other._checksum, other._files = self._elmo, self._checksum, self._files
        return other

    def __getstate__(self) -> dict[str, Any]:
        # for processes that are started, not forked: each loads the biLM itself
        return {"args": (self.name, self.store, self.cache_mb), "bytes": self.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*state["args"])  # type: ignore[misc]
        self.from_bytes(state["bytes"])

    def finish_update(self, optimizer: object) -> None:
        """Nothing: the biLM does not learn."""

    def to_device(self, device_type: str, device_id: int) -> None:
        """Nothing: every use moves the biLM to where thinc computes."""


def sentences(doc: Doc) -> list[list[int]]:
    """The positions of the words of each sentence; tokens of white space are not words.

    A document without sentences is split where spaCy's sentencizer would, with two differences. It
    looks at words only: white space between sentences must not move their boundary. And an opening
    bracket or typographic quote belongs to the next sentence.
    """
    if doc.has_annotation("SENT_START"):
        split = [[token.i for token in span if not token.is_space] for span in doc.sents]
        return [sentence for sentence in split if sentence]
    found: list[list[int]] = []
    ended = False
    for token in doc:
        if token.is_space:
            continue
        is_end = token.text in _SENTENCE_ENDS
        opens = token.is_left_punct and not token.is_right_punct
        if not found or (ended and not is_end and (opens or not token.is_punct)):
            found.append([])
            ended = False
        found[-1].append(token.i)
        ended |= is_end
    return found
