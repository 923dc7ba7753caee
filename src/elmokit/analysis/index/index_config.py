"""How an index was built, and whether its files are complete."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError, InputError, shown
from elmokit.formats import DEFAULT_MODEL

VERSION = 1
FILES = {
    "vectors": "<f2",
    "tokens": "<i4",
    "starts": "<i8",
    "digests": "<u8",
    "word_vectors": "<f2",
    "rows": "<i8",
    "probe": "<f2",
}
"""Data types of the files."""
NAMES = (*FILES, "words.txt", "graph", "config.json")
"""All files of an index."""
PROBE = ("the", "bank", ".")
"""Words whose vectors tell whether a model is the one an index was made with."""

AGAIN = "build the index again"
"""What to do about a damaged index."""
_CONFIG_BYTES = 1 << 20  # far more than any config.json has


@dataclass(frozen=True)
class IndexConfig:
    """How an index was built."""

    version: int
    model: str
    """Name or path of the model."""
    weights: str
    """SHA-256 of its weights."""
    parameters: int
    layer: int
    dim: int
    word_dim: int
    """Width P of the static word vectors."""
    tokenizer: str
    most_per_word: int
    """Most occurrences of a word in the graph; 0 means all."""
    sentences: int
    tokens: int
    words: int
    rows: int
    """Tokens in the graph."""
    sizes: dict[str, int]
    """Bytes of every file except config.json."""
    checksums: dict[str, int] = field(default_factory=dict)
    """CRC-32 of every file except config.json; empty if an earlier ElmoKit wrote the index."""

    def find_model(self) -> Path:
        """Return the path of the model; bundled models are found only in the package."""
        if not self.model:
            raise InputError("the model of this index was never saved; choose one with model=")
        return DEFAULT_MODEL.parent / self.model  # an absolute path stays as it is

    def write(self, folder: Path) -> None:
        """Write config.json."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexConfig:
        """Read config.json, and check that all files exist and have the right size."""
        path = folder / "config.json"
        if not path.exists():
            raise InputError(_not_there(folder))
        try:
            config = cls._parse(_read_json(path), folder)
            expected = config._expected_sizes()
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise FormatError(f"{path} is damaged ({reason:.100}); {AGAIN}") from error
        for name in NAMES[:-1]:
            path = folder / name
            size = path.stat().st_size if path.is_file() else None
            if size != expected[name]:
                found = "is missing" if size is None else f"has {size:,} bytes"
                raise FormatError(
                    f"{path} {found}; expected a file of {shown(expected[name])} bytes as in "
                    f"config.json; {AGAIN}"
                )
        return config

    @classmethod
    def _parse(cls, values: Any, folder: Path) -> IndexConfig:
        if not isinstance(values, dict):
            raise TypeError("expected an object")
        if isinstance(values["version"], int) and values["version"] > VERSION:
            raise FormatError(f"{folder} was written by a newer ElmoKit; update ElmoKit")
        values = {"checksums": {}} | values  # an earlier ElmoKit wrote none
        config = cls(**{one.name: values[one.name] for one in fields(cls)})
        for one in fields(cls):
            value, kind = getattr(config, one.name), one.type
            if kind == "str" and not isinstance(value, str):
                raise TypeError(f"{one.name} is not a text")
            if kind == "int" and not (type(value) is int and value >= 0):
                raise TypeError(f"{one.name} is not a number of 0 or more")
            if kind == "dict[str, int]" and not isinstance(value, dict):
                raise TypeError(f"{one.name} is not an object")
        return config

    def _expected_sizes(self) -> dict[str, Any]:
        """Bytes of every file; raises if the config contradicts itself."""
        numbers = {
            "vectors": self.tokens * self.dim,
            "tokens": self.tokens,
            "starts": self.sentences + 1,
            "digests": self.sentences,
            "word_vectors": self.words * self.word_dim,
            "rows": self.rows,
            "probe": len(PROBE) * self.dim,
        }
        for name, n in numbers.items():
            if self.sizes[name] != n * np.dtype(FILES[name]).itemsize:
                raise ValueError(f"the size of {name} contradicts the other numbers")
        if not min(self.tokens, self.sentences, self.words, self.rows, self.dim, self.word_dim):
            raise ValueError("a number is 0")
        return {name: self.sizes[name] for name in NAMES[:-1]}

    def verify(self, folder: Path, most_bytes: int | None = None) -> None:
        """Compare the files of an index with their checksums.

        Args:
            folder: The index.
            most_bytes: Skip files larger than this; None skips none.
        """
        for name, expected in self.checksums.items():
            if name not in NAMES[:-1] or (most_bytes is not None and self.sizes[name] > most_bytes):
                continue
            if checksum(folder / name) != expected:
                raise FormatError(
                    f"{folder / name} is damaged: its checksum differs from that in config.json; "
                    f"{AGAIN}"
                )


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            value = zlib.crc32(block, value)
    return value


def _read_json(path: Path) -> Any:
    if not path.is_file() or path.stat().st_size > _CONFIG_BYTES:
        raise ValueError("not a small file")
    return json.loads(path.read_text(encoding="utf-8"))


def _not_there(folder: Path) -> str:
    if folder.with_name(folder.name + ".partial").is_dir():
        return f"the index {folder} is not finished; build it with resume=True"
    return f"there is no index {folder}; build one with elmokit index"
