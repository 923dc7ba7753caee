"""Static word vectors from files: GloVe, word2vec and numpy.

Only the rows of the wanted words are kept, so a large file needs little memory.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np
import numpy.typing as npt

from elmokit.arguments import file_path, wrong
from elmokit.errors import InputError, shortened, shown
from elmokit.io.lines import PACKED, numbered_lines, open_unpacked, shown_path, total_bytes
from elmokit.io.progress import DelayedProgress

Array = npt.NDArray[np.float32]

_COUNTS = re.compile(r"(\d{1,12}) (\d{1,6})\s*$")  # the first line of word2vec: words, width
_BLOCK_BYTES = 1 << 20
_LONGEST_WORD = 10_000  # bytes
_WIDEST = 100_000
_REPORT_WORDS = 10_000
_ROWS = 4096
# numpy reads the header of an array as Python code
_DAMAGED = (
    OSError, EOFError, ValueError, TypeError, SyntaxError, TokenError, MemoryError, OverflowError,
    RecursionError,
)  # fmt: skip
_WORD_FILES = (".txt", ".vocab.txt", ".vocab", ".words.txt", ".words")
_TYPE_SUFFIXES = (".f16", ".f32", ".float16", ".float32")


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """Words and their vectors."""

    words: list[str]
    """Distinct, in the order of the file."""
    vectors: Array
    """(W, D)"""


def read_static_vectors(
    path: str | Path, words: Collection[str] | None = None, *, progress: bool = True
) -> StaticVectors:
    """Read static vectors.

    Args:
        path: Text with a word and its values on each line, as GloVe and word2vec write it, packed
            or not; binary word2vec (.bin); or a .npy array, or the folder that contains it, with a
            text file of words beside it.
        words: The words to read, spelled as in the file; None reads all. Other words are skipped,
            and words that the file does not have are left out.
        progress: Whether to show progress on standard error if it takes long.
    """
    path = file_path(path, "path")
    if isinstance(words, str) or (words is not None and not isinstance(words, Collection)):
        raise wrong("words", "a collection of words, or None", words)
    wanted = None if words is None else set(words)
    plain = path.with_suffix("") if path.suffix in PACKED else path
    if path.is_dir() or plain.suffix == ".npy":
        return _read_array(path, wanted)
    kept = _Kept(wanted)
    size = total_bytes([path]) if path.is_file() else None
    with DelayedProgress(f"reading {path.name}", size, "bytes", progress) as bar:
        read = _read_binary if plain.suffix == ".bin" else _read_text
        read(path, kept, bar.advance)
    return kept.result()


class _Kept:
    """Collects the rows of wanted words.

    Args:
        wanted: The words; None for all.
    """

    def __init__(self, wanted: set[str] | None) -> None:
        self.wanted = wanted
        self.width = 0
        self._seen: dict[str, None] = {}
        self._values = bytearray()  # an array of lists would take four times the memory

    def wants(self, word: str) -> bool:
        """Whether to add the row of a word; the first of several rows is used."""
        return (self.wanted is None or word in self.wanted) and word not in self._seen

    def add(self, word: str, row: Array) -> None:
        self._seen[word] = None
        self._values += row.tobytes()

    @property
    def complete(self) -> bool:
        return self.wanted is not None and len(self._seen) == len(self.wanted)

    def result(self) -> StaticVectors:
        vectors = np.frombuffer(self._values, np.float32).reshape(len(self._seen), self.width)
        return StaticVectors(list(self._seen), vectors)


def _checked(row: npt.NDArray[np.floating], where: str) -> Array:
    """A row as float32."""
    with np.errstate(over="ignore"):
        row = row.astype(np.float32)
    if not np.isfinite(row).all():
        raise _not_finite(row, where)
    return row


def _not_finite(row: Array, where: str) -> InputError:
    value = row[~np.isfinite(row)][0]
    return InputError(f"{where} contains {value}; expected finite numbers; remove the word")


# Text


def _read_text(path: Path, kept: _Kept, advance: Callable[[int], None]) -> None:
    name = shown_path(path)
    announced: int | None = None
    n = 0
    for number, line in numbered_lines(path, advance):
        if not (line := line.rstrip()):
            continue
        if number == 1 and (counts := _COUNTS.match(line)):
            announced, kept.width = int(counts[1]), int(counts[2])
            continue
        n += 1
        where = f"line {number} of {name}"
        kept.width = kept.width or line.count(" ")
        word, values = _split(line, kept.width, where)
        if not kept.wants(word):
            continue
        try:
            row = np.array(list(map(float, values.split(" "))))
        except ValueError as error:
            bad = str(error).partition(": ")[2]
            raise InputError(f"{where} has {bad} as a value; expected numbers") from None
        kept.add(word, _checked(row, where))
        if kept.complete:
            return
    if announced is not None and n < announced:
        raise InputError(
            f"{name} ends after {n:,} words; its first line says {announced:,}; is it complete?"
        )
    if not n:
        raise InputError(f"{name} contains no vectors; expected a word and its values on each line")


def _split(line: str, width: int, where: str) -> tuple[str, str]:
    """The word and the values of a line; words of GloVe may contain spaces, such as ". . ."."""
    n = line.count(" ")
    if n == width > 0:
        word, _, values = line.partition(" ")
    else:
        pieces = line.rsplit(" ", width) if width else [line]
        word, values = pieces[0], " ".join(pieces[1:])
        more = sum(_is_number(piece) for piece in word.split(" ")[1:])
        if n < width or not width or more:
            raise InputError(
                f"{where} has {n if n < width else width + more:,} values after the word; expected "
                f"{f'{width:,}' if width else 'at least one'}, separated by single spaces; is the "
                "file complete?"
            )
    if not (word := word.strip(" ")):
        raise InputError(f"{where} has an empty word; fix or remove the line")
    return word, values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Binary word2vec


def _read_binary(path: Path, kept: _Kept, advance: Callable[[int], None]) -> None:
    name = shown_path(path)
    position = 0
    with open_unpacked(path) as (raw, file):
        first = file.readline(64)
        counts = _COUNTS.match(first.decode("ascii", "replace"))
        if not counts or not 0 < int(counts[2]) <= _WIDEST:
            raise InputError(
                f"{name} does not begin with the number and the width of its vectors; expected "
                "binary word2vec; of fastText, use the file .vec"
            )
        n, kept.width = int(counts[1]), int(counts[2])
        for number, (encoded, values) in enumerate(_records(file, n, kept.width, name), 1):
            if number % _REPORT_WORDS == 0:
                advance(raw.tell() - position)
                position = raw.tell()
            where = f"word {number:,} of {name}"
            try:
                word = encoded.decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(f"{where} is {shown(encoded)}; expected UTF-8") from None
            if not word:
                raise InputError(f"{where} is empty; is the file complete?")
            if kept.wants(word):
                kept.add(word, _checked(np.frombuffer(values, "<f4"), f"{where} ({shown(word)})"))
                if kept.complete:
                    return


def _records(file: IO[bytes], n: int, width: int, name: str) -> Iterator[tuple[bytes, bytes]]:
    """The encoded word and the values of each of n vectors."""
    block, at = b"", 0
    for number in range(1, n + 1):
        while (end := block.find(b" ", at) + 1) == 0 or len(block) < end + 4 * width:
            more = file.read(_BLOCK_BYTES)
            block, at = block[at:] + more, 0
            if not more:
                raise InputError(
                    f"{name} ends after {number - 1:,} words; its first line says {n:,}; is it "
                    "complete?"
                )
            if b" " not in block[:_LONGEST_WORD] and len(block) > _LONGEST_WORD:
                raise InputError(
                    f"word {number:,} of {name} is longer than {_LONGEST_WORD:,} bytes; expected "
                    "binary word2vec"
                )
        # some programs end each vector with a line end
        yield block[at : end - 1].lstrip(b"\n"), block[end : end + 4 * width]
        at = end + 4 * width


# numpy


def _read_array(path: Path, wanted: set[str] | None) -> StaticVectors:
    if path.suffix in PACKED:
        raise InputError(f"{path} is packed; unpack it, because only parts of it are read")
    if path.is_dir():
        path = _only_array(path)
    words_path = _words_beside(path)
    array = _open_array(path)
    rows: dict[str, int] = {}
    n = 0
    for number, word in numbered_lines(words_path):
        n = number
        if not word:
            raise InputError(f"line {number} of {words_path} has no word; expected one per line")
        if wanted is None or word in wanted:
            rows.setdefault(word, number - 1)
    if n != len(array):
        raise InputError(
            f"{path} has {len(array):,} vectors, but {words_path} has {n:,} words; expected as "
            "many; are these files of the same set?"
        )
    order = np.fromiter(rows.values(), np.int64, len(rows))
    vectors = np.empty((len(rows), array.shape[1]), np.float32)
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        with np.errstate(over="ignore"):
            vectors[part] = array[order[part]]
        bad = np.flatnonzero(~np.isfinite(vectors[part]).all(1))
        if len(bad):
            word = list(rows)[start + bad[0]]
            raise _not_finite(vectors[start + bad[0]], f"the vector of {shown(word)} in {path}")
    return StaticVectors(list(rows), vectors)


def _only_array(folder: Path) -> Path:
    found = sorted(folder.glob("*.npy"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found[:5]) or "none"
        raise InputError(f"expected one .npy file in {folder}; found {names}; give a file")
    return found[0]


def _words_beside(path: Path) -> Path:
    """The file of the words: vectors.f16.npy may have vectors.f16.txt, vectors.vocab.txt, …."""
    names = [path.stem + end for end in _WORD_FILES]
    # the name may end in the type of the values
    if Path(path.stem).suffix in _TYPE_SUFFIXES:
        names += [Path(path.stem).stem + end for end in _WORD_FILES]
    names += ["vocab.txt", "words.txt"]
    for name in names:
        if (path.parent / name).is_file():
            return path.parent / name
    raise InputError(
        f"there is no file with the words of {path}; expected one word per line in "
        f"{', '.join(names[:-1])} or {names[-1]} beside it"
    )


def _open_array(path: Path) -> npt.NDArray[np.floating]:
    try:
        with warnings.catch_warnings():  # of files by Python 2
            warnings.simplefilter("ignore")
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGED as error:
        raise InputError(
            f"cannot read {path}: {shortened(str(error))}; expected an array of numpy; is it "
            "complete?"
        ) from error
    if array.ndim != 2 or array.dtype.kind != "f" or not array.size:
        raise InputError(
            f"{path} is an array {array.shape} of {array.dtype}; expected (words, width) of floats"
        )
    return array
