"""Embed a corpus, from the first line to the finished file."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.arguments import each, file_path, flag, instance, one_of, whole_number, wrong
from elmokit.elmo import Elmo
from elmokit.embed.writers import WriteOptions, find_writer
from elmokit.errors import InputError
from elmokit.inference.layers import LayerChoice, Layers
from elmokit.inference.states import CarriedState
from elmokit.inference.vectors import check_batch_size, float_type
from elmokit.io.atomic import check_place
from elmokit.io.job import Job, Layout, has_partial, open_job
from elmokit.io.lines import PACKED, count_lines, find_files, read_lines
from elmokit.io.progress import DelayedProgress
from elmokit.io.space import check_space, sample_start

Say = Callable[[str], None]

_LONGEST_KEY = 65_000  # bytes; HDF5 allows 65,535


@dataclass(frozen=True)
class EmbedOptions:
    """How to embed a corpus."""

    layers: Layers = "all"
    """As for :meth:`elmokit.Elmo.encode`."""
    dtype: str = "float32"
    """float32 or float16."""
    state: str = "zero"
    """What each sentence starts from: zero, warm, or carry."""
    batch_size: int | None = None
    """Most sentences in a batch; None chooses automatically."""
    resume: bool = False
    """Continue a run that was stopped."""
    restart: bool = False
    """Discard a run that was stopped."""
    write: WriteOptions = field(default_factory=WriteOptions)
    """What the output contains besides vectors."""


@dataclass(frozen=True)
class EmbedSummary:
    """Numbers about a finished run."""

    sentences: int
    tokens: int
    resumed: int
    """Sentences embedded by an earlier run that was stopped."""
    seconds: float
    bytes: int
    """Size of the output."""


def embed_file(
    elmo: Elmo,
    path: str | Path,
    output: Path,
    options: EmbedOptions | None = None,
    say: Say = lambda _: None,
) -> EmbedSummary:
    """Write the vectors of every line of a text file to a file.

    White space around a line is removed.

    Args:
        elmo: The model.
        path: The text, one sentence per line: plain, .gz, .xz, .zst, or ``-`` for standard input.
        output: As for :func:`embed_lines`.
        options: As for :func:`embed_lines`.
        say: As for :func:`embed_lines`.
    """
    path, options = file_path(path, "path"), _options(options)
    if path.is_dir():
        raise InputError(f"cannot read {path}: it is a folder; give a file")
    find_files([path])
    if path.suffix in PACKED:  # lines cannot be counted without unpacking everything
        bar = DelayedProgress("embedding", path.stat().st_size, "bytes")
        lines = (line.strip() for line in read_lines(path, bar.advance))
        return _embed(elmo, lines, output, options, say, bar, lambda _: None, path)
    bar = DelayedProgress("embedding", count_lines(path), "lines")
    lines = (line.strip() for line in read_lines(path))
    return _embed(elmo, lines, output, options, say, bar, bar.advance, path)


def embed_lines(
    elmo: Elmo,
    lines: Iterable[str],
    output: Path,
    options: EmbedOptions | None = None,
    n_lines: int | None = None,
    say: Say = lambda _: None,
) -> EmbedSummary:
    """Write the vectors of every line to a file.

    Until the file is complete, finished lines are kept in the folder OUTPUT.partial, and an
    existing file of the same name is unchanged. A run that was stopped and resumed gives the same
    vectors, to the last bit, as one that was not, if it continues on the same machine and device,
    with the same number of threads and the same ``batch_size``. You may change these for the rest
    of a run; the vectors then differ by rounding errors. So they do if memory runs out, because
    batches become smaller.

    Args:
        elmo: The model.
        lines: Sentences. Empty ones are kept, as arrays without tokens.
        output: A file that ends in .hdf5, .h5, .npz or .parquet.
        options: How to embed; default: ``EmbedOptions()``.
        n_lines: The number of lines, if known, for the time left in the progress bar.
        say: Called with a message if part of an earlier run was damaged and must be repeated.
    """
    if n_lines is not None:
        whole_number(n_lines, "n_lines", 0)
    bar = DelayedProgress("embedding", n_lines, "lines")
    strings = _strings(each(lines, "lines", "a list of strings"))
    return _embed(elmo, strings, output, _options(options), say, bar, bar.advance)


def _options(options: EmbedOptions | None) -> EmbedOptions:
    given = EmbedOptions() if options is None else options
    return instance(given, "options", EmbedOptions, "an EmbedOptions")


def _strings(lines: Iterable[Any]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if not isinstance(line, str):
            raise wrong(f"line {number}", "a string", line)
        yield line


def _embed(
    elmo: Elmo,
    lines: Iterable[str],
    output: Path,
    options: EmbedOptions,
    say: Say,
    bar: DelayedProgress,
    advance: Callable[[int], None],
    path: Path | None = None,
) -> EmbedSummary:
    """Embed lines; ``advance`` moves the bar by a number of lines, unless the reader moves it."""
    started = time.monotonic()
    instance(elmo, "elmo", Elmo, "a model from Elmo.load()")
    output = file_path(output, "output")
    writer = find_writer(output, options.write)
    _check(output, options)
    choice = LayerChoice.parse(options.layers, elmo.n_layers)
    layout = Layout(choice.layer_shape, elmo.dim, options.dtype)
    settings = vector_settings(elmo, choice, options.dtype, options.state)
    state = CarriedState() if options.state == "carry" else options.state

    def encode(texts: Iterator[str], done: Sequence[int]) -> Iterator[Any]:
        return elmo.stream(
            texts,
            options.layers,
            dtype=options.dtype,
            batch_size=options.batch_size,
            state=state,
            done=done,
        )

    with open_job(
        output, layout, settings, resume=options.resume, restart=options.restart, say=say
    ) as job:
        resumed = len(job)
        if path is not None:
            _check_space(elmo, path, job)
        if options.write.sentence_keys:
            lines = _check_keys(lines)
        with bar:
            advance(resumed)
            job.run(lines, "line", encode, advance)
        with (
            DelayedProgress("writing", len(job), "lines") as bar,
            job.output_file() as new,
        ):
            writer(new, job, elmo.tokenizer, options.write, bar.advance)
        seconds = time.monotonic() - started
        return EmbedSummary(len(job), job.n_tokens, resumed, seconds, output.stat().st_size)


def _check(output: Path, options: EmbedOptions) -> None:
    """Raise on a mistake before any work is done."""
    check_place(output)
    float_type(options.dtype)
    one_of(options.state, "state", ("zero", "warm", "carry"))
    check_batch_size(options.batch_size)
    flag(options.resume, "resume")
    flag(options.restart, "restart")
    if options.state == "carry" and options.resume and has_partial(output):
        raise InputError(
            "a run with carried state cannot be resumed, because the state is lost; pass "
            "restart=True to start over"
        )


def _check_space(elmo: Elmo, path: Path, job: Job) -> None:
    """Raise if the disk is clearly too small for the job's folder and the output."""

    def read(advance: Callable[[int], None]) -> Iterator[list[str]]:
        return map(elmo.tokenize, read_lines(path, advance))

    if sample := sample_start([path], read):
        rest = max(0, sample.n_tokens - job.n_tokens)
        check_space(job.output, (sample.n_tokens + rest) * job.layout.token_bytes)


def vector_settings(elmo: Elmo, choice: LayerChoice, dtype: str, state: str) -> dict[str, Any]:
    """Everything that the vectors of a corpus depend on, besides the text.

    Args:
        elmo: The model.
        choice: The layers.
        dtype: float32 or float16.
        state: What each sentence starts from.
    """
    checkpoint = elmo.checkpoint()
    config = json.dumps(checkpoint.config.to_dict(), sort_keys=True).encode()
    return {
        "tokenizer": elmo.tokenizer.name,
        "model": checkpoint.checksum(),
        "model config": hashlib.sha256(config).hexdigest(),
        "layers": choice.layers if isinstance(choice.layers, str) else list(choice.layers),
        "stacked": choice.stacked,
        "dtype": dtype,
        "precision": elmo.precision,
        "state": state,
    }


def _check_keys(lines: Iterable[str]) -> Iterator[str]:
    """Pass lines on, and raise at the first that cannot be a key."""
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line or "\0" in line or len(line.encode()) > _LONGEST_KEY:
            raise InputError(
                f"line {number} cannot be a key, because it is empty, contains a NUL, or has over "
                f"{_LONGEST_KEY:,} bytes; leave out sentence_keys=True"
            )
        if line in seen:
            raise InputError(
                f"line {number} cannot be a key, because it is the same as line {seen[line]}; "
                "leave out sentence_keys=True"
            )
        seen[line] = number
        yield line
