"""``elmokit pretrain``: train a model on text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.flags import in_flags
from elmokit.cli.options import DeviceOption, TokenizedOption
from elmokit.cli.output import say
from elmokit.text.tokenizers import DEFAULT_TOKENIZER, TOKENIZERS


def pretrain(
    text: Annotated[
        list[Path],
        typer.Argument(  # without a check: all mistakes are reported at once
            help="Text files or folders, plain or compressed (.gz, .xz, .zst); - for standard "
            "input."
        ),
    ],
    valid: Annotated[
        list[Path], typer.Option(help="Separate text to evaluate on; may be repeated.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    size: Annotated[
        str | None, typer.Option(help="small, medium or original.", show_default="small")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="TOML file with settings, such as those in recipes/.")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(help="Passes over the text.", show_default="10")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Training time in minutes, instead of epochs.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help=f"How to split text: {', '.join(TOKENIZERS)}.",
            show_default=f"that of --init-from, or {DEFAULT_TOKENIZER}",
        ),
    ] = None,
    tokenized: TokenizedOption = False,
    vocabulary_size: Annotated[
        int | None, typer.Option(help="Maximum size of the vocabulary.", show_default="100000")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same run.", show_default="0")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting of a recipe, such as optimizer.learning_rate=0.001; see "
            "docs/train.md. May be repeated.",
        ),
    ] = None,
    init_from: Annotated[
        str | None, typer.Option(help="Model to start from: a folder, ZIP archive or name.")
    ] = None,
    new_vocabulary: Annotated[
        bool,
        typer.Option(
            "--new-vocabulary", help="With --init-from: use the vocabulary of the text instead."
        ),
    ] = False,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help="Vocabulary file, one word per line.", show_default="frequent words of the text"
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue a stopped run; only settings of optimizer and training may change.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Where to keep the prepared text.", show_default="OUT/data"),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(help="Number of processes that tokenise.", show_default="one per core"),
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Train a biLM on your own text.

    The run folder contains settings, vocabulary, metrics, a checkpoint to resume from and, in
    best/, the model, ready for all other commands. Ctrl-C saves and stops.
    """
    from elmokit.cli import recipe_options as given
    from elmokit.pretrain.processes import were_restarted
    from elmokit.pretrain.recipe import Recipe
    from elmokit.pretrain.run.folder import RunFolder
    from elmokit.pretrain.run.paths import RunPaths
    from elmokit.pretrain.start import pretrain as run
    from elmokit.settings import Mistakes

    resume = resume or (were_restarted() and RunFolder(out).is_begun)
    options: dict[str, dict[str, Any]] = {
        "text": {
            "tokenizer": tokenizer,
            "tokenized": tokenized or None,
            "vocabulary_size": vocabulary_size,
            "new_vocabulary": new_vocabulary or None,
        },
        "training": {"epochs": epochs, "minutes": minutes, "seed": seed},
    }
    mistakes, settings = Mistakes(), None
    in_file: dict[str, Any] = {}
    with mistakes.noted():
        in_file = given.from_file(recipe, size)
    in_line = given.from_line(setting or [], options, mistakes)
    if epochs is not None and minutes is not None:
        mistakes.found.append("--epochs and --minutes cannot be combined; leave out one of them")
    if init_from is not None:
        with mistakes.noted():
            given.check_sizes(in_file, in_line, recipe)
    values = given.merged(in_file, in_line)
    with mistakes.noted():
        # the run that is resumed checks this itself, and its model may be gone
        model = None if resume or given.wants_new_vocabulary(values) else init_from
        given.check_words(in_line, vocabulary, model)
    with mistakes.noted():
        settings = RunFolder(out).recipe().changed(values) if resume else Recipe.from_dict(values)
    mistakes.report()
    paths = RunPaths(text, valid, out, data, init_from, vocabulary)
    run(
        settings,
        paths,
        resume=resume,
        device=device,
        processes=processes,
        say=lambda line: say(in_flags(line, sys.argv[1:])),
    )
