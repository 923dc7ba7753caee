"""Text files to numbers on disk: every word counted, every token a number.

Words are tokenised by several processes, in pieces of some megabytes; one process numbers the words
in the order they come and writes, and at the end all are numbered anew by how often they occur.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.errors import InputError
from elmokit.io.atomic import new_folder
from elmokit.io.lines import find_files, read_lines
from elmokit.io.progress import DelayedProgress
from elmokit.pretrain.data.corpus import Corpus
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer

_VERSION = 2  # of the files; another one is prepared anew
_PIECE = 2 << 20  # characters tokenised by a process at once


@dataclass(frozen=True)
class TextOptions:
    """How text is to be read."""

    tokenizer: str = "english"
    """A name of elmokit.text.tokenizers."""
    tokenized: bool = False
    """Whether each line is one sentence, its tokens apart by white space; else lines are
    paragraphs, to be split into sentences and tokens. A blank line ends a document."""


@dataclass
class _Piece:
    """Some tokenised text."""

    words: list[str]
    """Distinct words, in the order they come."""
    tokens: npt.NDArray[np.int32]
    """Which of them each token is."""
    lengths: npt.NDArray[np.int32]
    """Tokens of each sentence."""
    documents: list[int]
    """Sentences before which a new document begins."""


def prepare(
    paths: Sequence[str | Path],
    folder: Path,
    options: TextOptions,
    processes: int | None = None,
    name: str = "text",
) -> Corpus:
    """Text files as a corpus on disk; one that is there already is used if nothing changed.

    Args:
        paths: Files and folders.
        folder: Where the corpus goes.
        options: How to read the text.
        processes: How many tokenise; None for as many as there are processors.
        name: What the user knows the text as, should it be empty.
    """
    files = find_files(paths)
    fingerprint = _fingerprint(files, options)
    if (known := _known(folder, fingerprint)) is not None:
        return known
    get_tokenizer(options.tokenizer)  # a wrong name is better found out before a pool is started
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder, overwrite=True, own_names=Corpus.FILES) as new:
        if not _write(files, new, options, processes or os.cpu_count() or 1, fingerprint):
            named = ", ".join(map(str, files[:3])) + (", …" if len(files) > 3 else "")
            raise InputError(f"the {name} is empty: there is no word in {named}; give other files")
    return Corpus(folder)


def _write(
    files: list[Path], folder: Path, options: TextOptions, processes: int, fingerprint: str
) -> bool:
    """The files of a corpus; whether there is a word in it at all."""
    number: dict[str, int] = {}
    counts = np.zeros(1 << 16, np.int64)
    lengths, documents, n_sentences = [], [], 0
    size = sum(path.stat().st_size for path in files)
    with (
        (folder / "tokens.new").open("wb") as file,
        DelayedProgress("reading text", size, "bytes") as bar,
    ):
        for piece in _tokenise(_pieces(files, bar.advance), options, processes, size):
            rows = np.fromiter(
                (number.setdefault(word, len(number)) for word in piece.words),
                np.int32,
                len(piece.words),
            )
            while len(number) > len(counts):
                counts = np.concatenate([counts, np.zeros_like(counts)])
            # a piece has each of its words in one place only, so that this adds up
            counts[rows] += np.bincount(piece.tokens, minlength=len(rows))
            file.write(rows[piece.tokens].tobytes())
            documents += [n_sentences + first for first in piece.documents]
            lengths.append(piece.lengths)
            n_sentences += len(piece.lengths)
    counts = counts[: len(number)]
    if not len(counts):
        return False
    words = list(number)
    # most frequent first; among equals, by the alphabet, so that the order of files is no matter
    order = np.lexsort((np.array(words, object).argsort().argsort(), -counts))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    digest = hashlib.sha256()  # of everything, as the same words in another order are another text
    _renumber(folder / "tokens.new", folder / "tokens.bin", place, digest)
    (folder / "words.txt").write_text(
        "".join(words[i] + "\n" for i in order.tolist()), encoding="utf-8", newline="\n"
    )
    np.save(folder / "counts.npy", counts[order])
    np.save(folder / "lengths.npy", np.concatenate(lengths))
    np.save(folder / "documents.npy", np.array(documents, np.int64))
    for name in ("words.txt", "lengths.npy", "documents.npy"):
        digest.update((folder / name).read_bytes())
    about = {
        "version": _VERSION,
        "fingerprint": fingerprint,
        "digest": digest.hexdigest(),
        "options": asdict(options),
        "files": [str(path) for path in files],
        "tokens": int(counts.sum()),
        "sentences": n_sentences,
        "documents": len(documents),
        "distinct_words": len(words),
    }
    (folder / "corpus.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return True


def _renumber(
    source: Path, target: Path, place: npt.NDArray[np.int32], digest: hashlib._Hash
) -> None:
    """All tokens by the places of their words; the digest is told them too."""
    with source.open("rb") as old, target.open("wb") as new:
        while data := old.read(1 << 26):
            numbers = place[np.frombuffer(data, np.int32)].tobytes()
            new.write(numbers)
            digest.update(numbers)
    source.unlink()


def _tokenise(
    pieces: Iterator[tuple[list[str], bool]], options: TextOptions, processes: int, size: int
) -> Iterator[_Piece]:
    """Tokenised pieces in the order of the text, by several processes if that is worth it."""
    if processes == 1 or size < _PIECE:
        for lines, fresh in pieces:
            yield tokenise_lines(lines, options, fresh)
        return
    # spawned, not forked: the caller may have threads, which a fork does not survive
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        waiting: deque[Future[_Piece]] = deque()
        try:
            for lines, fresh in pieces:
                with _no_main_module():
                    waiting.append(pool.submit(tokenise_lines, lines, options, fresh))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _no_main_module() -> Iterator[None]:
    """While a process is started: else it would run the caller's script again, unless guarded."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _pieces(files: list[Path], advance: Callable[[int], None]) -> Iterator[tuple[list[str], bool]]:
    """Lines in pieces, and whether the first line of each begins a document."""
    lines: list[str] = []
    n, fresh = 0, True
    for path in files:
        for line in read_lines(path, advance):
            lines.append(line)
            n += len(line) + 1
            if n >= _PIECE:
                yield lines, fresh
                lines, n, fresh = [], 0, not line.strip()
        lines.append("")  # a file ends a document
    yield lines, fresh


def tokenise_lines(lines: Sequence[str], options: TextOptions, fresh: bool = True) -> _Piece:
    """The sentences of some lines, as numbers of their distinct words.

    Args:
        lines: A piece of text.
        options: How to read it.
        fresh: Whether a document begins with it.
    """
    split = get_tokenizer("whitespace" if options.tokenized else options.tokenizer)
    number: dict[str, int] = {}
    tokens: list[int] = []
    lengths: list[int] = []
    documents: list[int] = []
    for line in lines:
        if not line or line.isspace():
            fresh = True
            continue
        for sentence in [line] if options.tokenized else split_sentences(line):
            words = split(sentence)
            if not words:
                continue
            if fresh:
                documents.append(len(lengths))
                fresh = False
            lengths.append(len(words))
            tokens += [number.setdefault(word, len(number)) for word in words]
    return _Piece(list(number), np.array(tokens, np.int32), np.array(lengths, np.int32), documents)


def _fingerprint(files: list[Path], options: TextOptions) -> str:
    seen = [[str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns] for p in files]
    text = json.dumps([_VERSION, seen, asdict(options)])
    return hashlib.sha256(text.encode()).hexdigest()


def _known(folder: Path, fingerprint: str) -> Corpus | None:
    try:
        about = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return Corpus(folder) if about.get("fingerprint") == fingerprint else None
