"""ELMo's layers of many sentences, computed once and kept in float16: on the GPU, or on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from elmokit.devices import available_bytes, to_device
from elmokit.elmo import Elmo
from elmokit.inference.arrays import Array
from elmokit.io.atomic import clear_errors
from elmokit.io.progress import DelayedProgress
from elmokit.io.space import check_space, shown_bytes

Sentence = tuple[str, ...]

_GPU_SHARE = 0.5  # of the free memory, for layers; the rest is for training
_BLOCK = 1 << 14  # tokens that are written at once
_NO_ROWS = np.zeros(0, np.int64)


class FrozenLayers:
    """The vectors of sentences for a model that stays as it is.

    Sentences given to :meth:`keep` are computed once. If the model runs on a GPU and their layers
    fit into half of its free memory, they are kept there, and a batch is copied within the GPU.
    Otherwise they are kept in a file, as far as the limit allows. All others are computed when they
    are asked for. Use it as a context manager: the file is deleted at the end.

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
        self._kept: Array | Tensor = self._nothing()

    def __enter__(self) -> FrozenLayers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the file."""
        self._kept = self._nothing()
        self._place.clear()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def bytes_per_token(self) -> int:
        """Size of a token's vectors."""
        return len(self.layers) * self.elmo.dim * 2

    def keep(
        self,
        sentences: Iterable[Sequence[str]],
        say: Callable[[str], None] | None = None,
        *,
        progress: bool = True,
    ) -> None:
        """Compute the layers of sentences and keep them beside earlier ones, as long as they fit.

        Args:
            sentences: Lists of tokens; each distinct one is computed once.
            say: Called with a line that announces the size.
            progress: Show progress on standard error if the work takes more than two seconds.
        """
        distinct = dict.fromkeys(tuple(s) for s in sentences if len(s))
        if new := [sentence for sentence in distinct if sentence not in self._place]:
            self._keep(new, say, progress)

    def _keep(self, new: list[Sentence], say: Callable[[str], None] | None, progress: bool) -> None:
        n_tokens, before = sum(map(len, new)), len(self._kept)
        on_gpu = self._rows_on_gpu(n_tokens)
        fits, tokens = (new, n_tokens) if on_gpu is not None else ([], 0)
        on_disk = on_gpu is None and not isinstance(self._kept, Tensor)
        for sentence in new if on_disk else ():
            if (before + tokens + len(sentence)) * self.bytes_per_token > self._limit:
                break
            fits.append(sentence)
            tokens += len(sentence)
        if say is not None:
            size, rest = shown_bytes(tokens * self.bytes_per_token), n_tokens - tokens
            where = "of the GPU's memory" if on_gpu is not None else "on disk"
            more = f"; {rest:,} more are computed in every epoch (training.cache_gb)"
            say(
                f"ELMo's layers of {tokens:,} tokens take {size} {where} during training"
                f"{more if rest else ''}"
            )
        if not fits:
            return
        if on_gpu is not None:
            for first, arrays in self._blocks(fits, before, progress):
                block = torch.from_numpy(np.concatenate(arrays))
                on_gpu[first : first + len(block)] = to_device(block, on_gpu.device)
            self._kept = on_gpu
        else:
            self._kept = self._written(fits, tokens, progress)
        # at the end: what a stopped computation has left is not used
        for sentence in fits:
            self._place[sentence] = (before, len(sentence))
            before += len(sentence)

    def _written(self, new: Sequence[Sentence], tokens: int, progress: bool) -> Array:
        """Append the layers of sentences to the file; return all that it has."""
        if self._temporary is None:
            self._temporary = TemporaryDirectory(prefix="elmokit-", dir=self._folder)
        path = Path(self._temporary.name) / "layers.bin"
        check_space(path, tokens * self.bytes_per_token)
        before = len(self._kept)
        with clear_errors(path), path.open("r+b" if path.exists() else "wb") as file:
            file.seek(before * self.bytes_per_token)
            for _, arrays in self._blocks(new, before, progress):
                file.writelines(np.ascontiguousarray(array).data for array in arrays)
        return np.memmap(path, np.float16, "r", shape=self._shape(before + tokens))

    def joined(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the layers (N, K, D) of all N words of sentences in float16.

        They are on the model's device if they are kept there, and on the CPU otherwise.
        """
        if isinstance(self._kept, Tensor):
            places = [self._place.get(tuple(sentence)) for sentence in sentences]
            if all(places):
                rows = [np.arange(first, first + n) for first, n in filter(None, places)]
                index = torch.from_numpy(np.concatenate([_NO_ROWS, *rows]))
                return self._kept[to_device(index, self._kept.device)]
        arrays = self.of(sentences)
        shape = self._shape(sum(map(len, arrays)))
        # memory that a GPU copies from by itself
        pinned = self.elmo.device.type == "cuda"
        found = torch.empty(shape, dtype=torch.float16, pin_memory=pinned)
        if arrays:
            np.concatenate(arrays, out=found.numpy())
        return found

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

    def _blocks(
        self, sentences: Sequence[Sentence], first: int, progress: bool
    ) -> Iterator[tuple[int, list[Array]]]:
        """Compute layers (T, K, D) of sentences; yield some at a time, with their first row.

        Args:
            sentences: At least one.
            first: Row of the first token.
            progress: Whether to show progress.
        """
        arrays: list[Array] = []
        what, tokens = "computing ELMo's layers", sum(map(len, sentences))
        with DelayedProgress(what, tokens, "tokens", progress) as bar:
            ready = 0
            for sentence, array in zip(sentences, self._computed(sentences), strict=True):
                arrays.append(array.transpose(1, 0, 2))
                ready += len(sentence)
                bar.advance(len(sentence))
                if ready >= _BLOCK:
                    yield first, arrays
                    first, ready, arrays = first + ready, 0, []
        if arrays:
            yield first, arrays

    def _nothing(self) -> Array:
        return np.zeros(self._shape(0), np.float16)

    def _shape(self, tokens: int) -> tuple[int, int, int]:
        return tokens, len(self.layers), self.elmo.dim

    def _rows_on_gpu(self, tokens: int) -> Tensor | None:
        """Memory of the GPU for all layers and those of more tokens, the former copied.

        None on a CPU, if they do not fit, or if there is a file already.
        """
        device, before = self.elmo.device, len(self._kept)
        if before and not isinstance(self._kept, Tensor):
            return None
        if (before + tokens) * self.bytes_per_token >= _gpu_room(device):
            return None
        try:
            rows = torch.empty(self._shape(before + tokens), dtype=torch.float16, device=device)
        except torch.OutOfMemoryError:  # another process has taken the memory in the meantime
            return None
        if isinstance(self._kept, Tensor):
            rows[:before] = self._kept
        return rows

    def _computed(self, sentences: Sequence[Sentence]) -> Iterator[Array]:
        """Arrays (K, T, D)."""
        texts = [list(sentence) for sentence in sentences]
        # done: a resumed training needs the same bits, whatever was computed before
        return self.elmo.stream(texts, self.layers, dtype=np.float16, done=[])

    def _one(self, sentence: Sentence, found: dict[Sentence, Array]) -> Array:
        if sentence in found:
            return found[sentence]
        start, length = self._place.get(sentence, (0, 0))
        kept = self._kept[start : start + length]
        return kept.cpu().numpy() if isinstance(kept, Tensor) else kept


def _gpu_room(device: torch.device) -> float:
    """Bytes of a GPU's memory for layers; 0 if the device is no GPU."""
    return _GPU_SHARE * (available_bytes(device) or 0) if device.type == "cuda" else 0
