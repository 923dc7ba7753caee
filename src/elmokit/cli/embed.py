"""``elmokit embed``: write the vectors of a corpus to a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli.engine import SHARDS, run_engine
from elmokit.cli.options import (
    ModelOptions,
    RestartOption,
    ResumeOption,
    TokenizedOption,
    check_text,
    choice,
    with_model,
)
from elmokit.cli.output import resumable, resumed_note, say, warn
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.inference.layers import Layers


@with_model()
def embed(
    input: Annotated[
        list[str],
        typer.Argument(
            help="Text file with one sentence per line, plain or compressed (.gz, .xz, .zst); - "
            "for standard input. With --engine: files, folders or URLs of text, JSON lines or "
            "Parquet.",
        ),
    ],
    output: Annotated[
        str,
        typer.Argument(
            help="File to write: .hdf5, .h5, .npz or .parquet. With --engine: a folder or URL."
        ),
    ],
    model: ModelOptions,
    all_layers: Annotated[
        bool, typer.Option("--all", help="Write all layers (the default).")
    ] = False,
    top: Annotated[bool, typer.Option("--top", help="Write the top layer.")] = False,
    average: Annotated[
        bool, typer.Option("--average", help="Write the average of all layers.")
    ] = False,
    layers: Annotated[
        str | None,
        typer.Option(help="all, top, average, mix, or numbers like 1 or 0,2 (0: token layer)."),
    ] = None,
    dtype: Annotated[
        str | None,
        choice(
            "float32",
            "float16",
            help="Precision of the vectors in the file.",
            show_default="float32; float16 with --engine",
        ),
    ] = None,
    tokenized: TokenizedOption = False,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum sentences per batch.", show_default="automatic"),
    ] = None,
    state: Annotated[
        str,
        choice(
            "zero",
            "warm",
            "carry",
            help="LSTM state at the start of a sentence; carry continues from the previous "
            "sentence in the same row of the batch, as AllenNLP did.",
        ),
    ] = "zero",
    resume: ResumeOption = False,
    restart: RestartOption = False,
    forget_sentences: Annotated[
        bool, typer.Option("--forget-sentences", help="Do not store the sentences in the file.")
    ] = False,
    use_sentence_keys: Annotated[
        bool,
        typer.Option("--use-sentence-keys", help="Use sentences as keys instead of line numbers."),
    ] = False,
    cuda_device: Annotated[
        int | None,
        typer.Option(help="AllenNLP's form of --device: the number of a GPU, or -1 for the CPU."),
    ] = None,
    engine: Annotated[
        str | None,
        choice(
            "local",
            "ray",
            help="Write a folder of shards with several processes of this machine (local) or on a "
            "Ray cluster (ray).",
            show_default="one process, one file",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of processes.",
            show_default="one per GPU or core",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    gpus_per_worker: Annotated[
        float | None,
        typer.Option(
            min=0, help="GPUs that each process takes, such as 1 or 0.5.", rich_help_panel=SHARDS
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="Address of the Ray cluster; local starts one on this machine.",
            show_default="auto",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    shard_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows of a shard, about.",
            show_default="10000",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(
            help="Column of Parquet, or key of JSON lines, with the text.",
            show_default="text",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    sentence_vectors: Annotated[
        str | None,
        choice(
            "mean",
            "max",
            "first-last",
            help="Also write one vector per sentence, pooled like this.",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    vocab_path: Annotated[str | None, typer.Option(hidden=True)] = None,
    file_friendly_logging: Annotated[
        bool, typer.Option("--file-friendly-logging", hidden=True)
    ] = False,
    include_package: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Write the vectors of every token to a file.

    The file has AllenNLP's layout: one dataset per line of text, with the line number as its key,
    counting from 0. With --engine, the output is a folder of Parquet files with a manifest, and
    --resume continues with the shards that are missing.
    """
    without_effect = {
        "--vocab-path": vocab_path,
        "--file-friendly-logging": file_friendly_logging,
        "--include-package": include_package,
    }
    for flag in (flag for flag, given in without_effect.items() if given):
        warn(f"{flag} of allennlp elmo has no effect here; leave it out")
    chosen = _choose_layers(all_layers, top, average, layers)
    if cuda_device is not None:
        if model.device is not None:
            raise InputError("give --device or --cuda-device, not both")
        model = replace(model, device="cpu" if cuda_device < 0 else f"cuda:{cuda_device}")

    for_engine: dict[str, Any] = {
        "workers": workers,
        "gpus_per_worker": gpus_per_worker,
        "address": address,
        "shard_rows": shard_rows,
        "text_column": text_column,
        "sentence_vectors": sentence_vectors,
    }
    given = {name: value for name, value in for_engine.items() if value is not None}
    if engine is not None:
        if forget_sentences or use_sentence_keys:
            raise InputError(
                "--forget-sentences and --use-sentence-keys are for one file; leave them out with "
                "--engine"
            )
        given |= {"layers": chosen, "dtype": dtype or "float16", "state": state}
        given |= {"batch_size": batch_size, "resume": resume, "restart": restart}
        run_engine(model.spec(tokenized), input, output, engine=engine, **given)
        return
    if given:
        raise InputError(f"--{next(iter(given)).replace('_', '-')} goes with --engine")
    if len(input) > 1:
        raise InputError(
            f"{len(input)} inputs are given; without --engine, give one input and one output file"
        )
    text, file = check_text(Path(input[0])), Path(output)

    from elmokit.embed.run import EmbedOptions, embed_file
    from elmokit.embed.writers import WriteOptions, find_writer
    from elmokit.io.job import has_partial

    options = EmbedOptions(
        layers=chosen,
        dtype=dtype or "float32",
        state=state,
        batch_size=batch_size,
        resume=resume,
        restart=restart,
        write=WriteOptions(forget_sentences, use_sentence_keys),
    )
    find_writer(file, options.write)  # report mistakes before the model is loaded
    elmo = model.load(tokenized)
    if resume and not has_partial(file):
        say("nothing to resume; starting with the first line")
    with resumable(file):
        done = embed_file(elmo, text, file, options, say)
    say(
        f"{file}: {done.sentences:,} sentences{resumed_note(done.resumed)}, {done.tokens:,} "
        f"tokens, {done.bytes / 1e6:,.1f} MB, {done.seconds:,.1f} s"
    )


def _choose_layers(all_layers: bool, top: bool, average: bool, layers: str | None) -> Layers:
    flags = {"all": all_layers, "top": top, "average": average}
    given = [name for name, is_set in flags.items() if is_set] + (
        [] if layers is None else [layers]
    )
    if len(given) > 1:
        raise InputError("give only one of --all, --top, --average and --layers")
    value = given[0] if given else "all"
    if value in ("all", "top", "average", "mix"):
        return value
    try:
        numbers = [int(number) for number in value.split(",")]
    except ValueError:
        raise InputError(
            f"--layers must be all, top, average, mix, or numbers like 1 or 0,2, not {value!r}"
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers
