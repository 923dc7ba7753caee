"""ELMo's layers of many sentences, computed once and kept on disk in float16."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from elmokit.elmo import Elmo
from elmokit.inference.arrays import Array
from elmokit.io.atomic import clear_errors
from elmokit.io.progress import DelayedProgress
from elmokit.io.space import check_space, shown_bytes

Sentence = tuple[str, ...]


class FrozenLayers:
    """The vectors of sentences for a model that stays as it is.

    Sentences given to :meth:`keep` are computed once, as far as the limit allows. All others are
    computed when they are asked for. Use it as a context manager: the file is deleted at the end.

    Args:
        elmo: The model.
        layers: Numbers of the layers to keep, K of them.
        limit: Most bytes on disk.
        folder: Where to keep them; None for the system's temporary folder.
    """

    def __init__(
        self, elmo: Elmo, layers: Sequence[int], limit: int = 0, folder: Path | None = None
    ) -> None:
        self.elmo, self.layers, self._limit = elmo, list(layers), limit
        self._place: dict[Sentence, tuple[int, int]] = {}  # first token in the file, tokens
        self._folder = folder
        self._temporary: TemporaryDirectory[str] | None = None
        self._kept: Array = np.zeros((0, len(self.layers), elmo.dim), np.float16)

    def __enter__(self) -> FrozenLayers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the file."""
        self._kept = np.zeros((0, len(self.layers), self.elmo.dim), np.float16)
        self._place.clear()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def bytes_per_token(self) -> int:
        """Size of a token's vectors."""
        return len(self.layers) * self.elmo.dim * 2

    def keep(
        self, sentences: Iterable[Sequence[str]], say: Callable[[str], None] | None = None
    ) -> None:
        """Compute the layers of sentences and keep them, as long as they fit.

        Args:
            sentences: Lists of tokens; each distinct one is computed once.
            say: Called with a line that announces the size.
        """
        distinct = list(dict.fromkeys(tuple(s) for s in sentences if len(s)))
        n_tokens = sum(map(len, distinct))
        fits, tokens = [], 0
        for sentence in distinct:
            if (tokens + len(sentence)) * self.bytes_per_token > self._limit:
                break
            fits.append(sentence)
            tokens += len(sentence)
        if say is not None:
            size, rest = shown_bytes(tokens * self.bytes_per_token), n_tokens - tokens
            more = f"; {rest:,} more are computed in every epoch (training.cache_gb)"
            say(
                f"ELMo's layers of {tokens:,} tokens take {size} on disk during training"
                f"{more if rest else ''}"
            )
        if not fits:
            return
        self._temporary = TemporaryDirectory(prefix="elmokit-", dir=self._folder)
        path = Path(self._temporary.name) / "layers.bin"
        check_space(path, tokens * self.bytes_per_token)
        done = 0
        with (
            clear_errors(path),
            path.open("wb") as file,
            DelayedProgress("computing ELMo's layers", tokens, "tokens") as bar,
        ):
            for sentence, array in zip(fits, self._computed(fits), strict=True):
                file.write(np.ascontiguousarray(array.transpose(1, 0, 2)).tobytes())
                self._place[sentence] = (done, len(sentence))
                done += len(sentence)
                bar.advance(len(sentence))
        shape = (tokens, len(self.layers), self.elmo.dim)
        self._kept = np.memmap(path, np.float16, "r", shape=shape)

    def of(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        """Return the layers (T, K, D) of sentences in float16."""
        missing = {tuple(s) for s in sentences if len(s)} - self._place.keys()
        found: dict[Sentence, Array] = {}
        if missing:
            # sorted: which sentences share a batch must not depend on the order of a set
            ordered = sorted(missing)
            arrays = self._computed(ordered)
            found = {s: a.transpose(1, 0, 2) for s, a in zip(ordered, arrays, strict=True)}
        return [self._one(tuple(sentence), found) for sentence in sentences]

    def _computed(self, sentences: Sequence[Sentence]) -> Iterator[Array]:
        """Arrays (K, T, D)."""
        texts = [list(sentence) for sentence in sentences]
        # done: a resumed training needs the same bits, whatever was computed before
        return self.elmo.stream(texts, self.layers, dtype=np.float16, done=[])

    def _one(self, sentence: Sentence, found: dict[Sentence, Array]) -> Array:
        if sentence in found:
            return found[sentence]
        start, length = self._place.get(sentence, (0, 0))
        return self._kept[start : start + length]
