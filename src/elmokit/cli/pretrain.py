"""``elmokit pretrain``: from text to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.common import DeviceOption, TokenizedOption


def pretrain(
    text: Annotated[
        list[Path], typer.Argument(help="Text files or folders: plain, .gz, .xz or .zst.")
    ],
    valid: Annotated[
        list[Path], typer.Option(help="Text to evaluate on, kept apart; may be repeated.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    size: Annotated[
        str | None, typer.Option(help="small, medium or original; small if left out.")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="Settings, a TOML file such as those in recipes/.")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the text.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Instead of epochs: how long to train.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="whitespace, english, english-hyphens, characters or chinese; english if left "
            "out, or with --init-from the model's own."
        ),
    ] = None,
    tokenized: TokenizedOption = False,
    vocabulary_size: Annotated[int | None, typer.Option(help="Most words of the softmax.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same run.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting of a recipe, as optimizer.learning_rate=0.001; see docs/train.md.",
        ),
    ] = None,
    init_from: Annotated[
        str | None, typer.Option(help="Go on from a model: folder, ZIP archive or name.")
    ] = None,
    new_vocabulary: Annotated[
        bool,
        typer.Option("--new-vocabulary", help="With --init-from: predict this text's own words."),
    ] = False,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="The words to predict, one a line, instead of the text's own."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue a run that was stopped; settings of optimizer and training may change.",
        ),
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Where to keep the text as numbers; RUN/data if left out.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes that tokenise; all processors if left out.")
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Train a biLM on text of your own.

    The folder of the run holds settings, vocabulary, metrics, a checkpoint to resume from, and
    under best/ the model, ready for every other command. Ctrl-C saves and leaves.
    """
    from elmokit.cli import recipe_options as given
    from elmokit.config import Mistakes
    from elmokit.pretrain.recipe import Recipe
    from elmokit.pretrain.run.folder import RunFolder
    from elmokit.pretrain.start import pretrain as run

    options: dict[str, dict[str, Any]] = {
        "text": {
            "tokenizer": tokenizer,
            "tokenized": tokenized or None,
            "vocabulary_size": vocabulary_size,
        },
        "training": {"epochs": epochs, "minutes": minutes, "seed": seed},
    }
    mistakes, settings = Mistakes(), None
    in_file: dict[str, Any] = {}
    in_line: dict[str, Any] = {}
    with mistakes.noted():
        in_file = given.from_file(recipe, size)
    with mistakes.noted():
        in_line = given.from_line(setting or [], options)
    if epochs is not None and minutes is not None:
        mistakes.found.append("give --epochs or --minutes, not both; either ends the run")
    if init_from is not None:
        with mistakes.noted():
            given.check_sizes(in_file, in_line, recipe)
    with mistakes.noted():
        # what is resumed is compared with what it was, and its model may be gone
        own_words = None if new_vocabulary or resume else init_from
        given.check_words(in_line, vocabulary, own_words)
    with mistakes.noted():
        values = given.merged(in_file, in_line)
        settings = RunFolder(out).recipe().changed(values) if resume else Recipe.from_dict(values)
    mistakes.report()
    run(
        text,
        valid,
        out,
        settings,
        resume=resume,
        init_from=init_from,
        new_vocabulary=new_vocabulary,
        vocabulary=vocabulary,
        data=data,
        device=device,
        processes=processes,
    )
