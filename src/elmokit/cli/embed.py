"""``elmokit embed``: a corpus to vectors on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    QuantizeOption,
    TokenizerOption,
    WeightFileOption,
    open_model,
)
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.inference.layers import Layers


def embed(
    input: Annotated[str, typer.Argument(help="Text, a sentence a line; - for standard input.")],
    output: Annotated[Path, typer.Argument(help="File to write: .hdf5, .h5, .npz or .parquet.")],
    all_layers: Annotated[bool, typer.Option("--all", help="All layers (the default).")] = False,
    top: Annotated[bool, typer.Option("--top", help="The top layer.")] = False,
    average: Annotated[bool, typer.Option("--average", help="The average of all layers.")] = False,
    layers: Annotated[
        str | None,
        typer.Option(help="all, top, average, mix, or numbers like 1 or 0,2 (0: token layer)."),
    ] = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    dtype: Annotated[str, typer.Option(help="float32 or float16.")] = "float32",
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Lines are tokenised: split at white space only.")
    ] = False,
    tokenizer: TokenizerOption = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Most sentences at once; automatic if left out.")
    ] = None,
    state: Annotated[
        str,
        typer.Option(
            help="What a sentence starts from: zero, warm, or carry (the sentence before it in its "
            "row of the batch, as AllenNLP did)."
        ),
    ] = "zero",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was stopped.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard what a stopped run left.")
    ] = False,
    forget_sentences: Annotated[
        bool, typer.Option("--forget-sentences", help="Leave the sentences out of the file.")
    ] = False,
    use_sentence_keys: Annotated[
        bool, typer.Option("--use-sentence-keys", help="Sentences, not line numbers, as keys.")
    ] = False,
    quantize: QuantizeOption = None,
    device: DeviceOption = None,
    cuda_device: Annotated[
        int | None, typer.Option(help="AllenNLP's way to say --device: -1 for the CPU, else a GPU.")
    ] = None,
) -> None:
    """Write the vectors of every token of every line to a file.

    The file has AllenNLP's layout: a dataset a line, its key the line's number from 0.
    """
    chosen = _choose_layers(all_layers, top, average, layers)
    if cuda_device is not None:
        if device is not None:
            raise InputError("give --device or --cuda-device, not both")
        device = "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"

    from elmokit.embed.lines import count_lines, read_lines
    from elmokit.embed.run import EmbedOptions, embed_lines
    from elmokit.embed.writers import WriteOptions, find_writer
    from elmokit.io.job import spool_folder

    source = None if input == "-" else Path(input)
    options = EmbedOptions(
        layers=chosen,
        dtype=dtype,
        state=state,
        batch_size=batch_size,
        resume=resume,
        restart=restart,
        write=WriteOptions(forget_sentences, use_sentence_keys),
    )
    if source is not None and not source.exists():
        raise InputError(f"there is no file {source}; check the path, or give - for standard input")
    find_writer(output, options.write)  # before the model is loaded, which takes longer
    elmo = open_model(model, options_file, weight_file, tokenizer, device, quantize, tokenized)
    try:
        done = embed_lines(elmo, read_lines(source), output, options, count_lines(source))
    except KeyboardInterrupt:
        kept = spool_folder(output).exists()
        hint = "; add --resume to the same command to continue" if kept else ""
        print(f"\nelmokit: stopped{hint}", file=sys.stderr)
        raise typer.Exit(130) from None
    resumed = f" ({done.resumed:,} from the run before)" if done.resumed else ""
    print(
        f"{output}: {done.sentences:,} sentences{resumed}, {done.tokens:,} tokens, "
        f"{done.bytes / 1e6:,.1f} MB, {done.seconds:,.1f} s"
    )


def _choose_layers(all_layers: bool, top: bool, average: bool, layers: str | None) -> Layers:
    flags = {"all": all_layers, "top": top, "average": average}
    given = [name for name, is_set in flags.items() if is_set] + ([layers] if layers else [])
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
