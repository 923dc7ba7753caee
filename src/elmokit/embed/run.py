"""Embedding a corpus from the first line to the finished file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.elmo import Elmo
from elmokit.embed.writers import WriteOptions, find_writer
from elmokit.errors import InputError, OutputError
from elmokit.inference.engine import CARRIED_BATCH_SIZE
from elmokit.inference.layers import LayerChoice, Layers
from elmokit.inference.states import CarriedState
from elmokit.io.atomic import clear_errors
from elmokit.io.job import Layout, Spool, spool_folder
from elmokit.io.progress import DelayedProgress

_CPU_WINDOW_BYTES, _GPU_WINDOW_BYTES = 128 << 20, 1 << 30  # vectors held before they are written

_WINDOW_LINES = 16_384
_LONGEST_KEY = 65_000
_CONTINUE = "continue with --resume"


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
    """Most sentences run at once; None to choose."""
    resume: bool = False
    """Go on where a stopped run left off."""
    restart: bool = False
    """Throw away what a stopped run left."""
    write: WriteOptions = field(default_factory=WriteOptions)
    """How the sentences are named in the file."""


@dataclass(frozen=True)
class EmbedSummary:
    """What was done."""

    sentences: int
    tokens: int
    resumed: int
    """Sentences that an earlier, stopped run had done."""
    seconds: float
    bytes: int
    """Size of the output."""


def embed_lines(
    elmo: Elmo,
    lines: Iterable[str],
    output: Path,
    options: EmbedOptions,
    n_lines: int | None = None,
) -> EmbedSummary:
    """Write the vectors of every line to a file.

    Until the file is complete, what is done is kept in the folder OUTPUT.partial, and an earlier
    file of the same name stays as it is.

    Args:
        elmo: The model.
        lines: Sentences; empty ones are kept, as arrays without tokens.
        output: .hdf5 or .h5, .npz, or .parquet.
        options: How.
        n_lines: How many lines there are, where that is known, for the time left.
    """
    started = time.monotonic()
    writer = find_writer(output, options.write)
    spool, carried = _prepare(elmo, output, options)
    try:
        with clear_errors(output, _CONTINUE):
            spool.open(options.resume)
            resumed = len(spool)
            todo = _skip_done(iter(lines), spool, options)
            with DelayedProgress("embedding", n_lines, "lines") as bar:
                bar.advance(resumed)
                for window in _windows(elmo, todo, spool.layout, options):
                    arrays = elmo.encode(
                        [tokens for _, tokens in window],
                        options.layers,
                        dtype=options.dtype,
                        batch_size=options.batch_size,
                        state=carried or options.state,
                        progress=False,
                    )
                    spool.append([sentence for sentence, _ in window], arrays)
                    bar.advance(len(window))
            with DelayedProgress("writing", len(spool), "lines") as bar:
                writer(spool.new_output, spool, elmo.tokenizer, options.write, bar.advance)
            os.replace(spool.new_output, output)
        summary = EmbedSummary(
            len(spool),
            spool.n_tokens,
            resumed,
            time.monotonic() - started,
            output.stat().st_size,
        )
        spool.remove()
        return summary
    finally:
        spool.new_output.unlink(missing_ok=True)
        spool.close()
        if spool.is_new and not len(spool):  # nothing to come back to: let nothing be in the way
            spool.remove()


def _prepare(elmo: Elmo, output: Path, options: EmbedOptions) -> tuple[Spool, CarriedState | None]:
    """Check the options, and make the spool without touching the disk."""
    folder = spool_folder(output)
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: there is no folder {output.parent}")
    if output.is_dir():
        raise OutputError(f"cannot write {output}: it is a folder; give a file's name")
    if options.resume and options.restart:
        raise InputError("give --resume or --restart, not both")
    if folder.exists() and not (options.resume or options.restart):
        raise OutputError(
            f"an earlier run to {output} was stopped; add --resume to continue it, or --restart to "
            "begin anew"
        )
    if options.dtype not in ("float32", "float16"):
        raise InputError(f"dtype must be float32 or float16, not {options.dtype!r}")
    if options.state not in ("zero", "warm", "carry"):
        raise InputError(f"state must be zero, warm or carry, not {options.state!r}")
    carried = CarriedState() if options.state == "carry" else None
    if carried and options.resume and folder.exists():
        raise InputError(
            "a run with carried state cannot be resumed, as the state is lost; use --restart"
        )
    choice = LayerChoice.parse(options.layers, elmo.n_layers)
    layout = Layout(choice.layer_shape, elmo.dim, options.dtype)
    checkpoint = elmo.checkpoint()
    config = json.dumps(checkpoint.config.to_dict(), sort_keys=True).encode()
    settings: dict[str, Any] = {
        "model": checkpoint.checksum(),
        "model config": hashlib.sha256(config).hexdigest(),
        "layers": choice.layers if isinstance(choice.layers, str) else list(choice.layers),
        "stacked": choice.stacked,
        "dtype": options.dtype,
        "precision": elmo.precision,
        "state": options.state,
        "tokenizer": elmo.tokenizer.name,
    }
    return Spool(output, layout, settings), carried


def _skip_done(lines: Iterator[str], spool: Spool, options: EmbedOptions) -> Iterator[str]:
    """The lines not yet done, after checking that those done are still the same."""
    seen: dict[str, int] = {}
    n_done = len(spool)
    done = spool.sentences() if n_done else iter(())
    number = 0
    for number, line in enumerate(lines, 1):
        if options.write.sentence_keys:
            if not line or "\0" in line or len(line.encode()) > _LONGEST_KEY:
                raise InputError(
                    f"line {number} is empty, holds a NUL, or has over {_LONGEST_KEY:,} bytes, so "
                    "that it cannot be a key; leave out --use-sentence-keys"
                )
            if line in seen:
                raise InputError(
                    f"line {number} is the same as line {seen[line]}, so that it cannot be a key; "
                    "leave out --use-sentence-keys"
                )
            seen[line] = number
        if number <= n_done:
            if next(done) != line:
                raise InputError(
                    f"line {number} is not what it was when the run was stopped; give the same "
                    "input, or --restart to begin anew"
                )
            continue
        yield line
    if number < n_done:
        raise InputError(
            f"the input has {number} lines, fewer than the {n_done} already done by the run that "
            "was stopped; give the same input, or --restart to begin anew"
        )


def _windows(
    elmo: Elmo, lines: Iterator[str], layout: Layout, options: EmbedOptions
) -> Iterator[list[tuple[str, list[str]]]]:
    """Lines and their tokens in groups whose vectors fit in memory.

    Carried state needs whole batches, as its rows depend on where a batch begins.
    """
    budget = _CPU_WINDOW_BYTES if elmo.device.type == "cpu" else _GPU_WINDOW_BYTES
    multiple = (options.batch_size or CARRIED_BATCH_SIZE) if options.state == "carry" else 1
    window: list[tuple[str, list[str]]] = []
    size = 0
    for line in lines:
        tokens = elmo.tokenize(line)
        window.append((line, tokens))
        size += len(tokens) * layout.token_bytes
        full = size >= budget or len(window) >= _WINDOW_LINES
        if full and len(window) % multiple == 0:
            yield window
            window, size = [], 0
    if window:
        yield window
