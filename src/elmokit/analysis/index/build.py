"""Making an index of a text: every token embedded, and a graph over the vectors.

Memory stays the same however long the text is, but for its words and for the graph, which is held
whole while it is made: about 1.2 KB a token in it at 512 dimensions.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.index.graph import Graph, build_graph, choose_rows
from elmokit.analysis.index.token_index import FILES, NAMES, VERSION, IndexConfig, digest
from elmokit.analysis.reports.provenance import model_name
from elmokit.analysis.similarity import unit
from elmokit.analysis.texts import n_bytes, read_sentences, windows
from elmokit.elmo import Elmo
from elmokit.errors import InputError, OutputError
from elmokit.io.atomic import clear_errors
from elmokit.io.job import Layout, Spool, spool_folder
from elmokit.io.lines import find_files
from elmokit.io.progress import DelayedProgress

PROBE = ("the", "bank", ".")
"""Words whose vectors tell whether a model is the one an index was made with."""

_WINDOW_BYTES = 64 << 20  # vectors held before they are written, in float32
_WORDS_AT_ONCE = 4096
_SPOOLED = ("texts", "index", "settings.json")  # of the spool, and no part of an index


@dataclass(frozen=True)
class IndexOptions:
    """How to index a text."""

    layer: int | None = None
    """Which layer's vectors; None for the top one."""
    tokenized: bool = False
    """Whether each line is one sentence, its tokens apart by white space; else lines are
    paragraphs, to be split into sentences and tokens."""
    most_per_word: int = 2000
    """Most occurrences of a word in the graph, spread evenly over the text; 0 for all. A third of
    a text are a few dozen words like "the", whose neighbours nobody asks for."""
    resume: bool = False
    """Go on where a stopped run left off."""
    restart: bool = False
    """Throw away what a stopped run left."""
    force: bool = False
    """Replace an index that is there."""


@dataclass(frozen=True)
class IndexSummary:
    """What was done."""

    config: IndexConfig
    resumed: int
    """Sentences that an earlier, stopped run had embedded."""
    model_seconds: float
    """Time reading and embedding text."""
    graph_seconds: float
    bytes: int


def build_index(
    elmo: Elmo,
    paths: Sequence[str | Path],
    output: str | Path,
    options: IndexOptions | None = None,
) -> IndexSummary:
    """Write the index of a text.

    Until it is complete, what is done is kept in the folder OUTPUT.partial.

    Args:
        elmo: The model.
        paths: Text files, and folders of them.
        output: The folder to write.
        options: How.
    """
    options, output = options or IndexOptions(), Path(output).expanduser()
    files = find_files(paths)
    layer = _check(elmo, output, options)
    Graph(elmo.dim)  # whether usearch is there is better known before hours of work
    settings = _settings(elmo, layer, options)
    spool = Spool(output, Layout((), elmo.dim, "float16"), settings)
    try:
        with clear_errors(output, "continue with --resume"):
            spool.open(options.resume)
            resumed, started = len(spool), time.monotonic()
            _embed(elmo, files, spool, layer, options.tokenized)
            if not len(spool):
                named = ", ".join(map(str, files[:3])) + (", …" if len(files) > 3 else "")
                raise InputError(f"there is no word in {named}; give text to index")
            words = _write_text(spool)
            _write_words(elmo, words, spool.folder)
            (probe,) = elmo.encode([PROBE], layer)
            _write(spool.folder / "probe", unit(probe))
            embedded = time.monotonic()
            n_rows = _write_graph(spool.folder, len(words), elmo.dim, options.most_per_word)
            done = time.monotonic()
            config = _config(elmo, spool, settings, len(words), n_rows)
            spool.close()
            _put_in_place(spool.folder, output, config)
        size = sum(config.sizes.values())
        return IndexSummary(config, resumed, embedded - started, done - embedded, size)
    finally:
        spool.close()
        if spool.is_new and not len(spool):  # nothing to come back to: let nothing be in the way
            spool.remove()


def _check(elmo: Elmo, output: Path, options: IndexOptions) -> int:
    """Check the options; the number of the layer."""
    top = elmo.n_layers - 1
    layer = top if options.layer is None else options.layer
    if not 0 <= layer <= top:
        raise InputError(f"the layer must be from 0 (the token layer) to {top}, not {layer}")
    if options.most_per_word < 0:
        raise InputError(f"most_per_word must be 0 or more, not {options.most_per_word}")
    if options.resume and options.restart:
        raise InputError("give --resume or --restart, not both")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: there is no folder {output.parent}")
    if output.exists():
        if not output.is_dir():
            raise OutputError(f"cannot write {output}: it is a file; give the name of a new folder")
        if not options.force:
            raise OutputError(f"{output} exists already; choose another folder, or add --force")
        known = {*NAMES, *_SPOOLED}
        if others := sorted(p.name for p in output.iterdir() if p.name not in known):
            raise OutputError(
                f"{output} holds {', '.join(others[:3])}, which is no part of an index and would "
                "be lost; choose another folder"
            )
    if spool_folder(output).exists() and not (options.resume or options.restart):
        raise OutputError(
            f"an earlier run to {output} was stopped; add --resume to continue it, or --restart to "
            "begin anew"
        )
    return layer


def _settings(elmo: Elmo, layer: int, options: IndexOptions) -> dict[str, Any]:
    """What the index depends on; a run is continued only with the same."""
    return {
        "weights": elmo.checkpoint().checksum(),
        "precision": elmo.precision,
        "layer": layer,
        "tokenizer": "whitespace" if options.tokenized else elmo.tokenizer.name,
        "tokenized": options.tokenized,
        "most_per_word": options.most_per_word,
    }


def _embed(elmo: Elmo, files: list[Path], spool: Spool, layer: int, tokenized: bool) -> None:
    """Append the unit vectors of all sentences that are not done yet to the spool."""
    with DelayedProgress("embedding", n_bytes(files), "bytes") as bar:
        sentences = read_sentences(elmo, files, tokenized, bar.advance)
        for window in windows(_skip_done(sentences, spool), _WINDOW_BYTES // (4 * elmo.dim)):
            arrays = elmo.encode(window, layer, progress=False)
            texts = ["\n".join(tokens) for tokens in window]
            spool.append(texts, [unit(array).astype("<f2") for array in arrays])


def _skip_done(sentences: Iterator[list[str]], spool: Spool) -> Iterator[list[str]]:
    """The sentences not yet done, after checking that those done are still the same."""
    for number, text in enumerate(spool.sentences() if len(spool) else (), 1):
        if "\n".join(next(sentences, ())) != text:
            raise InputError(
                f"sentence {number} is not what it was when the run was stopped; give the same "
                "text, or --restart to begin anew"
            )
    yield from sentences


def _write_text(spool: Spool) -> list[str]:
    """Write tokens, starts, digests and words.txt; the words."""
    number: dict[str, int] = {}
    digests = np.empty(len(spool), "<u8")
    starts = np.zeros(len(spool) + 1, "<i8")
    with (spool.folder / "tokens").open("wb") as file:
        for i, text in enumerate(spool.sentences()):
            tokens = text.split("\n")
            digests[i], starts[i + 1] = digest(tokens), starts[i] + len(tokens)
            numbers = [number.setdefault(token, len(number)) for token in tokens]
            file.write(np.array(numbers, FILES["tokens"]).tobytes())
    _write(spool.folder / "digests", digests)
    _write(spool.folder / "starts", starts)
    with (spool.folder / "words.txt").open("w", encoding="utf-8", newline="\n") as words:
        words.writelines(word + "\n" for word in number)
    return list(number)


def _write_words(elmo: Elmo, words: list[str], folder: Path) -> None:
    """Write the words' vectors without a context: the token layer, which knows of none."""
    width = elmo.config.context.projection_dim  # both halves of that layer are the same
    with (
        (folder / "word_vectors").open("wb") as file,
        DelayedProgress("embedding words", len(words), "words") as bar,
    ):
        for first in range(0, len(words), _WORDS_AT_ONCE):
            some = words[first : first + _WORDS_AT_ONCE]
            (vectors,) = elmo.encode([some], 0, progress=False)
            file.write(unit(vectors[:, :width]).astype(FILES["word_vectors"]).tobytes())
            bar.advance(len(some))


def _write_graph(folder: Path, n_words: int, dim: int, most_per_word: int) -> int:
    """Write rows and graph, going on with a graph that a stopped run left; how many rows."""

    def mapped(name: str) -> npt.NDArray[Any]:
        return np.memmap(folder / name, FILES[name], "r")

    rows = choose_rows(
        mapped("tokens"), mapped("starts"), mapped("digests"), n_words, most_per_word
    )
    path = folder / "graph"
    before = (folder / "rows").read_bytes() if (folder / "rows").is_file() else b""
    if before != rows.astype(FILES["rows"]).tobytes():  # the text has grown since
        path.unlink(missing_ok=True)
        _write(folder / "rows", rows)
    build_graph(path, rows, mapped("vectors").reshape(-1, dim))
    return len(rows)


def _write(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array's bare values; whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(array.astype(FILES[path.name], copy=False).tobytes())
    os.replace(new, path)


def _config(
    elmo: Elmo, spool: Spool, settings: dict[str, Any], n_words: int, n_rows: int
) -> IndexConfig:
    return IndexConfig(
        version=VERSION,
        model=model_name(elmo.source),
        weights=settings["weights"],
        parameters=elmo.n_parameters,
        layer=settings["layer"],
        dim=elmo.dim,
        word_dim=elmo.config.context.projection_dim,
        tokenizer=settings["tokenizer"],
        most_per_word=settings["most_per_word"],
        sentences=len(spool),
        tokens=spool.n_tokens,
        words=n_words,
        rows=n_rows,
        sizes={name: (spool.folder / name).stat().st_size for name in NAMES[:-1]},
    )


def _put_in_place(folder: Path, output: Path, config: IndexConfig) -> None:
    """Rename the finished folder; an old index is there until then."""
    config.write(folder)
    old = output.with_name(f".{output.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if output.exists():
        os.replace(output, old)
    os.replace(folder, output)
    for name in _SPOOLED:
        (output / name).unlink(missing_ok=True)
    shutil.rmtree(old, ignore_errors=True)
