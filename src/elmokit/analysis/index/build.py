"""Build the index of a text: the vector of every token, and a graph over the vectors.

Memory does not grow with the length of the text, except for its distinct words and for the graph,
which stays in memory while it is built: about 1.2 KB per token in the graph at 512 dimensions.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.analysis.index.graph import LINK_BYTES, Graph, build_graph, choose_rows
from elmokit.analysis.index.index_config import (
    FILES,
    NAMES,
    PROBE,
    VERSION,
    IndexConfig,
    checksum,
)
from elmokit.analysis.index.token_index import digest
from elmokit.analysis.similarity import unit
from elmokit.analysis.texts import read_sentences
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.formats import model_name
from elmokit.io.atomic import CONTINUE, check_folder, new_file
from elmokit.io.html_table import facts, html_table
from elmokit.io.job import Job, Layout, open_job
from elmokit.io.lines import find_files, total_bytes
from elmokit.io.notebook import BriefRepr, Displayed, Shown
from elmokit.io.progress import DelayedProgress
from elmokit.io.space import Sample, check_space, sample_start, shown_bytes

_WORDS_AT_ONCE = 4096
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class IndexOptions:
    """How to index a text."""

    layer: int | None = None
    """The layer whose vectors are indexed; None for the top one."""
    tokenized: bool = False
    """Whether each line is one sentence, with tokens separated by white space. Otherwise lines are
    paragraphs, which are split into sentences and tokens."""
    most_per_word: int = 2000
    """Most occurrences of a word in the graph, spread evenly over the text; 0 for all. A few dozen
    words like "the" make up a third of a text, and nobody asks for their neighbours."""
    resume: bool = False
    """Continue a run that was stopped."""
    restart: bool = False
    """Discard a run that was stopped."""
    overwrite: bool = False
    """Replace an existing index."""


@dataclass(frozen=True, repr=False)
class IndexSummary(BriefRepr, Displayed):
    """Numbers about a finished run."""

    config: IndexConfig
    resumed: int
    """Sentences embedded by an earlier run that was stopped."""
    model_seconds: float
    """Time spent on reading and embedding text."""
    graph_seconds: float
    """Time spent on building the graph."""
    bytes: int
    """Size of the index."""

    def _shown(self) -> Shown:
        values = {
            "sentences": self.config.sentences,
            "tokens": self.config.tokens,
            "layer": self.config.layer,
            "size": shown_bytes(self.bytes),
        }
        return Shown(html_table(facts("A new index", values)))


def build_index(
    elmo: Elmo,
    paths: Sequence[str | Path],
    output: str | Path,
    options: IndexOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> IndexSummary:
    """Write the index of a text.

    Until it is complete, finished work is kept in the folder OUTPUT.partial. A run that was stopped
    and resumed gives the same index as one that was not, as for
    :func:`elmokit.embed.run.embed_lines`. Only the graph may differ: several threads build it in
    no fixed order.

    Args:
        elmo: The model.
        paths: Text files, folders of them, or ``-`` for standard input.
        output: The folder to write.
        options: How to index the text; default: ``IndexOptions()``.
        say: Called with the estimated size of the index, and with a message if part of an earlier
            run was damaged and must be repeated.
    """
    options, output = options or IndexOptions(), Path(output).expanduser()
    files = find_files(paths)
    layer = _check(elmo, output, options)

    def sizes(job: Job) -> None:
        if sample := sample_start(
            files, lambda advance: read_sentences(elmo, files, options.tokenized, advance)
        ):
            size = _estimate_bytes(elmo, sample, options.most_per_word)
            say(f"{output} will take about {shown_bytes(size)}")
            check_space(output, size - job.n_tokens * job.layout.token_bytes)

    def fill(job: Job) -> None:
        sizes(job)
        _embed(elmo, files, job, layer, options.tokenized)
        if not len(job):
            named = ", ".join(map(str, files[:3])) + (", …" if len(files) > 3 else "")
            raise InputError(f"there is no word in {named}; give text to index")

    settings = _settings(elmo, layer, options)
    return _build(elmo, output, settings, fill, options, say)


def build_index_of(
    elmo: Elmo,
    rows: Callable[[], Iterator[tuple[list[str], npt.NDArray[Any]]]],
    output: str | Path,
    layer: int,
    tokenizer: str,
    n_tokens: int,
    options: IndexOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> IndexSummary:
    """Write the index of sentences whose vectors exist.

    Args:
        elmo: The model that computed them.
        rows: Yields the tokens of each sentence, and their vectors (T, D), from the first.
        output: As for :func:`build_index`.
        layer: The layer of the vectors.
        tokenizer: The name of the tokenizer that split the text.
        n_tokens: How many tokens there are.
        options: As for :func:`build_index`, but for ``layer`` and ``tokenized``.
        say: As for :func:`build_index`.
    """
    options, output = options or IndexOptions(), Path(output).expanduser()
    _check(elmo, output, replace(options, layer=layer))
    settings = _settings(elmo, layer, options) | {"tokenizer": tokenizer, "tokenized": None}

    def fill(job: Job) -> None:
        check_space(output, (n_tokens - job.n_tokens) * job.layout.token_bytes)
        waiting: deque[npt.NDArray[Any]] = deque()

        def texts() -> Iterator[str]:
            for tokens, vectors in rows():
                waiting.append(vectors)
                yield "\n".join(tokens)

        def vectors_of(texts: Iterator[str], done: Sequence[int]) -> Iterator[npt.NDArray[Any]]:
            n_read = 0
            while n := sum(1 for _ in islice(texts, _ROWS_AT_ONCE)):  # one write for all of them
                for number in range(n_read, n_read + n):
                    vectors = waiting.popleft()
                    if number >= len(done):
                        yield unit(vectors.astype(np.float32)).astype("<f2")
                        bar.advance(len(vectors))
                n_read += n

        with DelayedProgress("reading vectors", n_tokens, "tokens") as bar:
            bar.advance(job.n_tokens)
            job.run(texts(), "sentence", vectors_of)
        if not len(job):
            raise InputError("there is no word in the sentences; give text to index")

    return _build(elmo, output, settings, fill, options, say)


def _build(
    elmo: Elmo,
    output: Path,
    settings: dict[str, Any],
    fill: Callable[[Job], None],
    options: IndexOptions,
    say: Callable[[str], None],
) -> IndexSummary:
    """Fill a job with sentences and unit vectors, and write the index of it."""
    Graph(elmo.dim)  # raises now, not after hours of work, if usearch is not installed
    layout = Layout((), elmo.dim, "float16")
    with open_job(
        output, layout, settings, resume=options.resume, restart=options.restart, say=say
    ) as job:
        resumed, started = len(job), time.monotonic()
        fill(job)
        words = _write_text(job)
        _write_words(elmo, words, job.folder)
        (probe,) = elmo.stream([PROBE], settings["layer"], done=[])
        _write(job.folder / "probe", unit(probe))
        embedded = time.monotonic()
        n_rows = _write_graph(job.folder, len(words), elmo.dim, options.most_per_word)
        done = time.monotonic()
        config = _config(elmo, job, settings, len(words), n_rows)
        config.write(job.folder)
        job.output_folder(NAMES)
    size = sum(config.sizes.values())
    return IndexSummary(config, resumed, embedded - started, done - embedded, size)


def _check(elmo: Elmo, output: Path, options: IndexOptions) -> int:
    """Raise on a mistake before any work is done; returns the number of the layer."""
    top = elmo.n_layers - 1
    layer = top if options.layer is None else options.layer
    if not 0 <= layer <= top:
        raise InputError(f"layer must be from 0 (the token layer) to {top}, not {layer}")
    if options.most_per_word < 0:
        raise InputError(f"most_per_word must be 0 or more, not {options.most_per_word}")
    check_folder(output, options.overwrite, NAMES)
    return layer


def _estimate_bytes(elmo: Elmo, sample: Sample, most_per_word: int) -> int:
    """Estimate the size of an index from the start of the text."""
    counts = Counter(token for tokens in sample.sentences for token in tokens)
    most = most_per_word or sample.n_tokens
    n_rows = sum(min(most, count / sample.share) for count in counts.values())
    n_words = len(counts) * sample.share**-0.5  # a longer text repeats most of its words
    per_word = 2 * elmo.config.context.projection_dim + 8
    per_token, per_row = 2 * elmo.dim + 5, 2 * elmo.dim + LINK_BYTES + 8
    return round(sample.n_tokens * per_token + n_rows * per_row + n_words * per_word)


def _settings(elmo: Elmo, layer: int, options: IndexOptions) -> dict[str, Any]:
    """Everything that the index depends on."""
    return {
        "weights": elmo.checkpoint().checksum(),
        "precision": elmo.precision,
        "layer": layer,
        "tokenizer": "whitespace" if options.tokenized else elmo.tokenizer.name,
        "tokenized": options.tokenized,
        "most_per_word": options.most_per_word,
    }


def _embed(elmo: Elmo, files: list[Path], job: Job, layer: int, tokenized: bool) -> None:
    """Append the unit vectors of all remaining sentences to the job."""

    def encode(texts: Iterator[str], done: Sequence[int]) -> Iterator[npt.NDArray[Any]]:
        for array in elmo.stream((text.split("\n") for text in texts), layer, done=done):
            yield unit(array).astype("<f2")

    with DelayedProgress("embedding", total_bytes(files), "bytes") as bar:
        sentences = read_sentences(elmo, files, tokenized, bar.advance)
        texts = ("\n".join(tokens) for tokens in sentences)
        job.run(texts, "sentence", encode)


def _write_text(job: Job) -> list[str]:
    """Write tokens, starts, digests and words.txt; returns the distinct words."""
    number: dict[str, int] = {}
    digests = np.empty(len(job), "<u8")
    starts = np.zeros(len(job) + 1, "<i8")
    with (job.folder / "tokens").open("wb") as file:
        for i, text in enumerate(job.texts()):
            tokens = text.split("\n")
            digests[i], starts[i + 1] = digest(tokens), starts[i] + len(tokens)
            numbers = [number.setdefault(token, len(number)) for token in tokens]
            file.write(np.array(numbers, FILES["tokens"]).tobytes())
    _write(job.folder / "digests", digests)
    _write(job.folder / "starts", starts)
    with (job.folder / "words.txt").open("w", encoding="utf-8", newline="\n") as words:
        words.writelines(word + "\n" for word in number)
    return list(number)


def _write_words(elmo: Elmo, words: list[str], folder: Path) -> None:
    """Write each word's vector without context, which is the token layer."""
    width = elmo.config.context.projection_dim  # both halves of that layer are equal
    with (
        (folder / "word_vectors").open("wb") as file,
        DelayedProgress("embedding words", len(words), "words") as bar,
    ):
        firsts = range(0, len(words), _WORDS_AT_ONCE)
        some = (words[first : first + _WORDS_AT_ONCE] for first in firsts)
        for vectors in elmo.stream(some, 0, done=[]):
            file.write(unit(vectors[:, :width]).astype(FILES["word_vectors"]).tobytes())
            bar.advance(len(vectors))


def _write_graph(folder: Path, n_words: int, dim: int, most_per_word: int) -> int:
    """Write rows and graph, continuing the graph of a stopped run; returns the number of rows."""

    def mapped(name: str) -> npt.NDArray[Any]:
        return np.memmap(folder / name, FILES[name], "r")

    rows = choose_rows(
        mapped("tokens"), mapped("starts"), mapped("digests"), n_words, most_per_word
    )
    path = folder / "graph"
    before = (folder / "rows").read_bytes() if (folder / "rows").is_file() else b""
    if before != rows.astype(FILES["rows"]).tobytes():  # the text has grown since the earlier run
        path.unlink(missing_ok=True)
        _write(folder / "rows", rows)
    build_graph(path, rows, mapped("vectors").reshape(-1, dim))
    return len(rows)


def _write(path: Path, array: npt.NDArray[Any]) -> None:
    """Write the bare values of an array."""
    with new_file(path, temporary=path.with_name(path.name + ".new"), then=CONTINUE) as new:
        new.write_bytes(array.astype(FILES[path.name], copy=False).tobytes())


def _config(
    elmo: Elmo, job: Job, settings: dict[str, Any], n_words: int, n_rows: int
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
        sentences=len(job),
        tokens=job.n_tokens,
        words=n_words,
        rows=n_rows,
        sizes={name: (job.folder / name).stat().st_size for name in NAMES[:-1]},
        checksums={name: checksum(job.folder / name) for name in NAMES[:-1]},
    )
