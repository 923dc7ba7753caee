"""Prepares text files for training: counts the words and stores every token as a number.

Several processes tokenise pieces of a few megabytes. One process numbers the words in the order
they first occur and writes the tokens. At the end, words are renumbered by frequency.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError, InputError, OutputError
from elmokit.io.atomic import clear_errors, new_folder, remove_leftovers
from elmokit.io.lines import STANDARD_INPUT, find_files, read_lines, total_bytes
from elmokit.io.lock import lock_folder
from elmokit.io.progress import DelayedProgress
from elmokit.pretrain.data.corpus import Corpus, digest_of
from elmokit.text.chinese import simplified
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import DEFAULT_TOKENIZER, get_tokenizer

_VERSION = 2  # of the file format; text in another version is prepared again
_WAIT_SECONDS = 0.2  # between looks at a lock
_PIECE = 2 << 20  # characters that a process tokenises at once


@dataclass(frozen=True)
class TextOptions:
    """How to read text."""

    tokenizer: str = DEFAULT_TOKENIZER
    """A name from elmokit.text.tokenizers."""
    tokenized: bool = False
    """Whether each line is one sentence with tokens separated by white space. Otherwise lines are
    paragraphs, and are split into sentences and tokens. A blank line ends a document."""
    script: str = "any"
    """As in :class:`~elmokit.config.ModelConfig`: simplified replaces traditional characters."""


@dataclass
class _Piece:
    """Some tokenised text."""

    words: list[str]
    """Distinct words in order of first occurrence."""
    tokens: npt.NDArray[np.int32]
    """Index into the words, for each token."""
    lengths: npt.NDArray[np.int32]
    """Number of tokens of each sentence."""
    documents: list[int]
    """First sentence of each document."""


def prepare(
    paths: Sequence[str | Path],
    folder: Path,
    options: TextOptions,
    processes: int | None = None,
    name: str = "text",
) -> Corpus:
    """Prepare text files as a corpus on disk, or reuse the existing one if nothing changed.

    Args:
        paths: Files and folders, or ``-`` for standard input.
        folder: Where to write the corpus.
        options: How to read the text.
        processes: Number of processes that tokenise; None uses one per core.
        name: What to call the text in an error message.
    """
    files = find_files(paths)
    fingerprint = _fingerprint(files, options)
    if (known := _known(folder, fingerprint)) is not None:
        return known
    get_tokenizer(options.tokenizer)  # reports a wrong name before any process is started
    with _alone(folder):
        if (known := _known(folder, fingerprint)) is not None:  # another run has prepared it
            return known
        own_names = (*Corpus.FILES, *Corpus.OLD_FILES)
        with new_folder(folder, overwrite=True, own_names=own_names) as new:
            if not _write(files, new, options, processes or os.cpu_count() or 1, fingerprint):
                named = ", ".join(map(str, files[:3])) + (", …" if len(files) > 3 else "")
                raise InputError(f"the {name} is empty: no words in {named}; use other files")
        return Corpus(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other run prepares text in the same place, and remove what killed runs left."""
    with ExitStack() as stack:
        with clear_errors(folder.parent):
            folder.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                stack.enter_context(lock_folder(folder.parent, folder.parent))
                break
            except OutputError:
                time.sleep(_WAIT_SECONDS)
        remove_leftovers(folder)
        yield


def _write(
    files: list[Path], folder: Path, options: TextOptions, processes: int, fingerprint: str | None
) -> bool:
    """Write the files of a corpus; return False if the text has no words."""
    number: dict[str, int] = {}
    counts = np.zeros(1 << 16, np.int64)
    lengths, documents, n_sentences = [], [], 0
    size = total_bytes(files)
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
            # the words of a piece are distinct, so no row occurs twice
            counts[rows] += np.bincount(piece.tokens, minlength=len(rows))
            file.write(rows[piece.tokens].tobytes())
            documents += [n_sentences + first for first in piece.documents]
            lengths.append(piece.lengths)
            n_sentences += len(piece.lengths)
    counts = counts[: len(number)]
    if not len(counts):
        return False
    words = list(number)
    # most frequent first, ties in alphabetical order, which does not depend on the order of files
    order = np.lexsort((np.array(words, object).argsort().argsort(), -counts))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    _renumber(folder / "tokens.new", folder / "tokens.bin", place)
    (folder / "words.txt").write_text(
        "".join(words[i] + "\n" for i in order.tolist()), encoding="utf-8", newline="\n"
    )
    np.save(folder / "lengths.npy", np.concatenate(lengths))
    np.save(folder / "documents.npy", np.array(documents, np.int64))
    rest = ((folder / name).read_bytes() for name in ("words.txt", "lengths.npy", "documents.npy"))
    digest = digest_of(np.memmap(folder / "tokens.bin", np.int32, "r"), *rest)
    about = {
        "version": _VERSION,
        "fingerprint": fingerprint,
        "digest": digest,
        "options": asdict(options),
        "files": [str(path) for path in files],
        "tokens": int(counts.sum()),
        "sentences": n_sentences,
        "documents": len(documents),
        "distinct_words": len(words),
    }
    (folder / "corpus.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return True


def _renumber(source: Path, target: Path, place: npt.NDArray[np.int32]) -> None:
    """Write all tokens with new numbers."""
    with source.open("rb") as old, target.open("wb") as new:
        while data := old.read(1 << 26):
            new.write(place[np.frombuffer(data, np.int32)].tobytes())
    source.unlink()


def _tokenise(
    pieces: Iterator[tuple[list[str], bool]],
    options: TextOptions,
    processes: int,
    size: int | None,
) -> Iterator[_Piece]:
    """Yield tokenised pieces in order; long texts use several processes."""
    if processes == 1 or (size is not None and size < _PIECE):
        for lines, fresh in pieces:
            yield tokenise_lines(lines, options, fresh)
        return
    # spawn, not fork: the caller may have threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_follow_parent) as pool:
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


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep new processes from running the caller's script, which may lack a main guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _pieces(files: list[Path], advance: Callable[[int], None]) -> Iterator[tuple[list[str], bool]]:
    """Yield lines in pieces, and whether the first line of each begins a document."""
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
    """Split lines into sentences and tokens, and number the distinct words.

    Args:
        lines: A piece of text.
        options: How to read it.
        fresh: Whether it begins a document.
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
        if options.script == "simplified":
            line = simplified(line)
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


def _fingerprint(files: list[Path], options: TextOptions) -> str | None:
    """Identify unchanged files; None for standard input, which is always read again."""
    if STANDARD_INPUT in files:
        return None
    seen = [[str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns] for p in files]
    text = json.dumps([_VERSION, seen, asdict(options)])
    return hashlib.sha256(text.encode()).hexdigest()


def _known(folder: Path, fingerprint: str | None) -> Corpus | None:
    if fingerprint is None:
        return None
    try:
        about = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        same = isinstance(about, dict) and about.get("fingerprint") == fingerprint
        return Corpus(folder) if same else None
    # a damaged corpus is prepared again, and so is one that another run is just replacing
    except (OSError, ValueError, RecursionError, FormatError):
        return None
